// SPDX-License-Identifier: Apache-2.0
//
// The keeper's end of the link, for tests of the engine: answers its questions,
// remembers what it was told, and hands all of it over to the next engine.
// Processes do not exist, unless a test gives the ids of ones that do.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gantry/toolkit/process/process_id.h>

#include "core/async/loop.h"
#include "core/link/channel.h"
#include "core/link/messages.h"
#include "core/os/process.h"

namespace gantry::test {

/// Thread: the loop's.
class FakeKeeper {
 public:
  /// A socket for an engine that runs on `loop`; it takes the place of the one
  /// before. Owner: the caller.
  UniqueFd Connect(async::Loop& loop);

  /// Ends the link, as a keeper that dies.
  void Hangup() { channel_.reset(); }

  /// An instance, as the shim announces it; the engine is told. `group`: the pod's id.
  uint64_t Announce(const std::string& id, const std::string& bundle,
                    const std::string& group = "");
  void RemoveInstance(uint64_t number, bool with_group = false);

  /// The socket of an instance's group.
  static std::string AddressOf(const std::string& group) { return "unix:///s/" + group; }

  /// A process that the keeper is the parent of.
  ProcessId AddOrphan(int32_t pid, uint64_t start_time = 7);
  /// It ends; the engine is told, now and after each restart, until it acknowledges.
  void End(ProcessId process, int wait_status);
  void AskToDelete(uint64_t tag, uint64_t instance);

  /// Sends any message.
  template <class T>
  void Tell(const T& message) {
    IgnoreError(channel_->Send(message), "a test that ends the link asks for it");
  }

  /// Messages of these types get no answer.
  std::vector<link::Type> silent;
  /// Instead of a good answer, to the next such question.
  std::map<link::Type, Error> fail_next;

  /// It knows no Watched and no Recovering, and of a Take only the first name.
  bool of_before = false;
  /// It knows no `root_paths` of Spawn.
  bool leaves_roots_empty = false;

  /// Called between a spawn and its answer.
  std::function<void()> when_spawned;

  // What it was told.
  link::Hello hello;
  std::vector<uint64_t> pongs;
  std::vector<link::Recovering> recovering;
  std::vector<link::Spawn> spawns;
  std::vector<ProcessId> acknowledged;
  std::map<uint64_t, link::LastResort> last_resorts;
  std::vector<link::Forget> forgotten;
  std::vector<link::DeleteDone> deleted;
  std::map<std::string, UniqueFd> stored;
  std::map<uint64_t, link::InstanceAdded> instances;
  /// Processes whose end nobody has acknowledged.
  std::map<ProcessId, link::Exit> exits;
  /// Processes that it waits for since an engine before.
  std::vector<link::ProcessRef> watched;
  /// What was spawned under a name.
  std::map<std::string, ProcessId> named;
  /// Of those, and whose ends have been acknowledged.
  std::vector<link::EndedName> ended_names;

 private:
  void OnMessage(link::Message message);
  void OnAsked(const link::Message& message);
  void SendSnapshot();
  template <class Answer>
  bool Refused(link::Type type, Answer& answer);
  void OnSpawn(link::Spawn spawn);
  void OnAdopt(const link::Adopt& adopt);
  void OnAcknowledged(const ProcessId& process);
  void OnPut(link::Message& message);
  void OnTake(const link::Take& take);
  void OnAddMember(const link::AddMember& add);

  std::unique_ptr<link::Channel> channel_;
  uint64_t next_instance_ = 1;
  int32_t next_pid_ = 1'000'000'000;
  std::map<int32_t, uint64_t> start_times_;
};

}  // namespace gantry::test
