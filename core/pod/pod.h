// SPDX-License-Identifier: Apache-2.0
//
// What the Sandbox service knows of one pod without a pause container. State
// only; what happens to it is in sandbox_service.cc.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/ids.h>
#include <gantry/process.h>
#include <gantry/sandbox.h>

#include "core/async/co.h"
#include "core/pod/pod_cgroup.h"
#include "core/store/record.h"
#include "core/task/group.h"
#include "core/task/life.h"
#include "core/task/record_file.h"
#include "core/task/sandboxes.h"
#include "core/task/state.h"

namespace gantry::keeper_client {
class HostProcesses;
class WatchedProcess;
using WatchedProcessPtr = std::shared_ptr<WatchedProcess>;
}  // namespace gantry::keeper_client

namespace gantry::link {
struct LastResort;
}

namespace gantry::task {

/// Its record has such a blob where the pod's cgroup is ours to remove.
inline constexpr std::string_view kMadeCgroup = "made-cgroup";
/// And such a one while it starts: see Pod::created_blob.
inline constexpr std::string_view kCreatedBlob = "sandbox-created";

/// Thread: loop, all of it, but what is handed to a worker by value.
struct Pod {
  Pod(SandboxId sandbox, GroupPtr in) : id(std::move(sandbox)), group(std::move(in)) {}

  Pod(const Pod&) = delete;
  Pod& operator=(const Pod&) = delete;
  ~Pod() = default;

  const SandboxId id;
  const GroupPtr group;
  /// The keeper's number for it.
  uint64_t instance = 0;
  std::string bundle;
  std::string handler;
  std::string backend_name;
  std::string options_json;
  std::string netns_path;
  /// `runtime.v1.PodSandboxConfig`.
  std::string config;
  std::map<std::string, std::string> annotations;
  std::vector<store::MountedRecord> mounts;
  PodCgroup cgroups;
  int64_t created_at_ns = 0;
  /// Of state none: it is only expected, see `ready`. Never paused.
  ProcessLife life;
  /// Null: its backend could not take it up again.
  SandboxEntryPtr entry;
  /// What the backend had saved before Start: counts again when that fails.
  std::string created_blob;
  /// See SandboxEntry::prefix.
  std::string prefix;
  /// The host process, where it is one.
  keeper_client::WatchedProcessPtr host;
  /// For the record, also where `host` is not there any more.
  HostPid host_pid;
  uint64_t start_time = 0;
  /// What containerd is told.
  uint32_t pid = 0;
  /// Its CreateSandbox has succeeded: `Parts::on_sandbox` has heard of it.
  bool told_of = false;
  /// Create, Start, Stop, Update and Shutdown, in the order in which they came.
  async::Slot slot;
  /// Set when it has been taken up again after a restart of the engine, or turned
  /// out to be none; at once for a new one. Calls wait for it.
  async::OneShot<void> ready;
  RecordFile record;
};

using PodPtr = std::shared_ptr<Pod>;

/// The pod as it goes to disk.
store::Record ToRecord(const Pod& pod);
/// What its backend is told of it, whether it is made or taken up again. Thread: loop.
SandboxRequest SandboxRequestOf(const Pod& pod);
/// How the keeper alone can end it.
link::LastResort ToLastResort(const Pod& pod, const keeper_client::HostProcesses& processes);

}  // namespace gantry::task
