// SPDX-License-Identifier: Apache-2.0
//
// The sandboxes of the backends: what containers stand in. One is made by the
// first container of a group and ends with its last, or is a pod of the Sandbox
// service and ends with that.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>
#include <gantry/ids.h>

#include "core/async/co.h"
#include "core/backend/pod_events.h"
#include "core/task/group.h"
#include "core/task/own_contexts.h"
#include "core/task/parts.h"

namespace gantry {
class Sandbox;
class SandboxBackend;
}  // namespace gantry

namespace gantry::backend {
class Context;
}

namespace gantry::task {

class BackendCalls;
class BackendProxy;
struct Container;

/// A sandbox of a backend and the containers that use it.
struct SandboxEntry {
  SandboxEntry() = default;
  SandboxEntry(const SandboxEntry&) = delete;
  SandboxEntry& operator=(const SandboxEntry&) = delete;
  ~SandboxEntry();

  SandboxId id;
  /// All its containers are of this one.
  std::string handler;
  std::string backend_name;
  /// Both of its group.
  std::string address;
  std::string ns;
  async::AccountPtr account;
  gantry::SandboxBackend* backend = nullptr;
  std::unique_ptr<backend::Context> context;
  std::shared_ptr<Sandbox> sandbox;
  std::string options_json;
  /// What the names of its descriptors and processes at the keeper begin with.
  std::string prefix;
  /// The backend's saved state. In the record of the pod, or of a container.
  std::string blob;
  /// Makes a function that writes the record `blob` is in, for a worker. Null:
  /// nobody keeps it any more. Thread: loop.
  std::function<std::function<Status()>()> keep_blob;
  /// Of a sandbox that containers made: who keeps `blob`, at first the container
  /// that it was made for.
  std::weak_ptr<Container> blob_owner;
  /// Those that stand in it. Not only those that are found there (`Containers::MembersOf`): one
  /// whose removal failed half-way and that nobody finds any more counts, since what is left of
  /// it may need the sandbox.
  size_t containers = 0;
  /// It is a pod's, which outlives its containers.
  bool is_pod = false;
  /// Of a pod, with or without a pause container: see link::kMembersFolder.
  std::string members_folder;
};

using SandboxEntryPtr = std::shared_ptr<SandboxEntry>;

/// What a sandbox is made of.
struct NewSandbox {
  GroupPtr group;
  std::string handler;
  std::string backend_name;
  std::string options_json;
  std::string prefix;
  /// What its backend had saved before a restart of the engine.
  std::string blob;
  /// Of a pod: who is told of its process and its end.
  std::optional<backend::PodEvents> pod;
};

/// Thread: loop, but what is for workers.
class Sandboxes {
 public:
  Sandboxes(const Parts& parts, BackendCalls& calls, BackendProxy& proxy)
      : parts_(parts), calls_(calls), proxy_(proxy), own_contexts_(parts, calls) {}

  /// Loads the backend where it is not loaded.
  async::Task<Status> Load(std::string backend);

  /// The one that stands; null: none. By the group's address.
  SandboxEntryPtr Find(const std::string& address) const;
  /// Serialises the making of a group's sandbox.
  std::shared_ptr<async::Slot> SlotOf(const std::string& address);
  /// An entry that nobody finds yet and that has no sandbox. Loads the backend
  /// where it is not loaded.
  async::Task<Result<SandboxEntryPtr>> Prepare(NewSandbox wanted);
  /// From now on it is found.
  void Enter(const std::string& address, SandboxEntryPtr entry);
  /// Ends it: it is not found any more, its backend removes every trace, and
  /// what it has at the keeper goes.
  async::Task<Status> Close(const std::string& address, SandboxEntryPtr entry);

  /// Nobody is in the group any more.
  void ForgetGroup(const std::string& address) { slots_.erase(address); }

  /// After a restart of the engine: the names in the keeper's descriptor store.
  void SetStored(std::vector<std::string> names);

  /// In order.
  std::vector<std::string>& stored() { return stored_; }

  /// No backend has the sandbox of that prefix any more, and its containers count
  /// as ended: so do its processes, and its descriptors go.
  void Abandon(const std::string& prefix);
  /// The same for those that an earlier engine left and whose prefix is not `used`, and for
  /// what backends had for no sandbox.
  void AbandonAllBut(const std::set<std::string>& used);

 private:
  /// `wanted`: for which sandbox; null: for none.
  async::Task<Result<BackendRef>> FindBackend(std::string name, const NewSandbox* wanted);
  void EndForgotten(const SandboxEntry& entry);

  struct KnownBackend {
    BackendRef backend;
    /// Nothing else is asked of it before.
    async::OneShot<void> attached;
  };

  const Parts& parts_;
  BackendCalls& calls_;
  BackendProxy& proxy_;
  OwnContexts own_contexts_;
  std::map<std::string, SandboxEntryPtr> entries_;
  std::map<std::string, std::shared_ptr<async::Slot>> slots_;
  /// Those that were needed; a backend lives as long as the process.
  std::map<std::string, KnownBackend> backends_;
  std::vector<std::string> stored_;
};

}  // namespace gantry::task
