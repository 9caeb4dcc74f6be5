// SPDX-License-Identifier: Apache-2.0
//
// How nothing of a container stays: after a Delete, a Create that failed, the end of its pod, or
// the keeper's word that it is gone.
#pragma once

#include <optional>

#include <gantry/error.h>

#include "core/async/co.h"
#include "core/task/backend_call.h"
#include "core/task/container.h"
#include "core/task/containers.h"

namespace gantry::task {

class BackendCalls;
class BackendProxy;
class Members;
class Records;
struct Parts;

/// Thread: loop.
class Remover {
 public:
  /// Owner: all of them outlive it.
  Remover(const Parts& parts, Containers& containers, Records& records, BackendCalls& calls,
          BackendProxy& proxy, Members& members)
      : parts_(parts),
        containers_(containers),
        records_(records),
        calls_(calls),
        proxy_(proxy),
        members_(members) {}

  /// Removes every trace outside the bundle. Again: allowed. `deadline`: the
  /// backend's; without, the configuration's from now on.
  async::Task<Status> Remove(ContainerPtr container, std::optional<Deadline> deadline = {});
  /// A Create that failed: nothing of it may stay.
  async::Task<void> RollBack(ContainerPtr container);
  /// What the keeper has removed, alone or `with_group`, goes here, too.
  async::Task<void> FreeRemoved(ContainerPtr container, bool with_group);
  /// The container is not found any more, and whoever waits for it is told.
  void Leave(Container& container);

  async::Task<void> CloseStreams(TaskProcessPtr process);
  /// An end that is known is published before the delete, and whoever waits for it gets it.
  static async::Task<void> AwaitPublishedExit(TaskProcess& init);

  /// Kills what still runs of the containers of a sandbox, and ends when their exits are on
  /// record. They stay until they are deleted, without a backend.
  async::Task<void> EndMembers(SandboxEntryPtr entry);

 private:
  async::Task<void> EndMember(ContainerPtr member);
  async::Task<void> RemoveLeftCgroup(Container& container);
  async::Task<Status> RemoveMadeCgroup(Container& container, Deadline deadline);
  void SetGone(TaskProcess& process);

  const Parts& parts_;
  Containers& containers_;
  Records& records_;
  BackendCalls& calls_;
  BackendProxy& proxy_;
  Members& members_;
};

}  // namespace gantry::task
