// SPDX-License-Identifier: Apache-2.0
//
// Taking up what an engine before this one left: for each instance that the
// keeper names, its record is read, its streams are taken out of the store, its
// sandbox and container are recovered by their backend (container_recovery.h), and ends that came
// meanwhile are handled (process_recovery.h). Containers of one pod one after
// the other, in the order in which they were announced; pods side by side, a few at a
// time, those first that somebody has called. Calls to a container wait for this;
// calls to others do not.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/async/co.h"
#include "core/recovery/container_recovery.h"
#include "core/recovery/left_bundles.h"
#include "core/recovery/process_recovery.h"
#include "core/task/containers.h"

namespace gantry::task {

class PodMap;
class RecoveryOrder;
class Remover;
class ReplayedStarts;
class Records;
class SandboxService;
class Sandboxes;
struct Components;
struct Parts;

/// Thread: loop.
class Recovery {
 public:
  /// Owner: all of them outlive it.
  Recovery(Components& with, const PodMap& pods, SandboxService& sandbox_service);

  /// Everything from before a restart has been told: takes it all up again.
  /// `stored`: the names in the descriptor store.
  void SnapshotEnd(std::vector<std::string> stored);

 private:
  using Groups = std::map<std::string, std::vector<ContainerPtr>>;
  using Addresses = std::vector<std::string>;

  /// It or a pod of its name, and what there is of it.
  struct ToRecover {
    ContainerPtr container;
    async::OneShot<Found> found;
  };

  void DropOrphans();
  void DropOrphanedSandboxes();
  async::Task<void> AwaitReplays();
  async::Task<void> RecoverAll(Groups by_group, Addresses suspects);
  async::Task<void> LoadWarm();
  async::Task<void> RecoverInTurn(Groups& by_group, async::Scope& groups);
  /// Begins with these. What is to be awaited: each one's end.
  std::vector<async::OneShot<void>> BeginRecovery(const Addresses& next, Groups& by_group,
                                                  async::Scope& groups);
  async::Task<void> RecoverGroup(std::string address, std::vector<ToRecover> group);
  async::Task<void> RecoverInstance(ToRecover one);

  const Parts& parts_;
  const Instances& instances_;
  Containers& containers_;
  Records& records_;
  Sandboxes& sandboxes_;
  const PodMap& pods_;
  SandboxService& sandbox_service_;
  RecoveryOrder& order_;
  Remover& remover_;
  ReplayedStarts& replays_;
  ProcessRecovery process_recovery_;
  ContainerRecovery container_recovery_;
  /// Of some container there is no telling which processes are its own: its record could not be
  /// read.
  bool left_out_ = false;
  /// The same of a whole group, of which no engine is to read anything: no telling which
  /// sandboxes are its own, either.
  bool group_left_out_ = false;
};

}  // namespace gantry::task
