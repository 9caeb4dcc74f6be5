// SPDX-License-Identifier: Apache-2.0
//
// What the containers of one pod have in common: the machine that they are in, who hears of their
// ends, and how much time there is. The sandbox and its containers share it.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <gantry/context.h>
#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/host_process.h>
#include <gantry/ids.h>
#include <gantry/toolkit/process/oom_score.h>
#include <gantry/toolkit/sync/mutex.h>

#include "plugins/vmm/container/pod_machine.h"
#include "plugins/vmm/container/pod_record.h"
#include "plugins/vmm/container/process_ends.h"

namespace gantry::vmm {

/// How long a guest is believed that it is only slow. A call that had less is no sign of anything.
struct Patience {
  /// For a SIGKILL or a removal to be answered.
  std::chrono::milliseconds answer = std::chrono::seconds(5);
  /// From a SIGKILL that it has answered to the end.
  std::chrono::milliseconds end = std::chrono::seconds(5);
};

/// Thread: any, but for `Boot`, `Recover` and `Shutdown`: one at a time.
class Pod {
 public:
  Pod(SandboxId id, SandboxContext& context, std::unique_ptr<PodMachine> machine,
      const Patience& patience = {})
      : id_(std::move(id)), context_(context), patience_(patience), machine_(std::move(machine)) {}

  const SandboxId& id() const { return id_; }

  SandboxContext& context() { return context_; }

  PodMachine& machine() { return *machine_; }

  ProcessEnds& ends() { return ends_; }

  const Patience& patience() const { return patience_; }

  /// What is on record; its machine is there where `root` or `machine` say so.
  PodRecord record() const;

  /// Of one step of the call under way: bounded also where the caller gives all the time there is.
  Deadline StepDeadline() const;

  /// Starts the machine and puts it on record. `root`: the container that it is started for, or
  /// empty. On failure nothing is left.
  Status Boot(std::string root, PodMachineRequest request);
  /// As an engine before this one has left it; `blob`: what was saved. A machine that was never
  /// finished, or is gone, is none: see `is_booted`. One whose record cannot be read is ended.
  /// `request`: the sandbox's, of which the record knows better where there is one.
  Status Recover(const std::string& blob, PodMachineRequest request);

  /// There is a machine, or was one that has ended.
  bool is_booted() const { return booted_; }

  /// Its record could not be read: what it was started for is not known.
  bool is_lost() const { return is_lost_; }

  /// It runs.
  bool IsAlive() const { return booted_ && !machine_->ended(); }

  /// The files of its containers; null: there is no machine, and nothing is left of them.
  Storage* storage() { return has_files_ ? &machine_->storage() : nullptr; }

  /// Its pid stands for what is in it. Errors: kUnavailable: there is none any more.
  Result<HostPid> MachinePid() const;

  /// To the agent, within a step. Errors: kUnavailable also where there is no machine.
  template <class Request>
  Result<typename Request::Answer> Call(const Request& request) {
    if (!IsAlive()) {
      return Fail(Code::kUnavailable, "sandbox '{}': its machine does not run", id_.str());
    }
    return machine_->guest().Call(request, StepDeadline());
  }

  /// What came of a SIGKILL or a removal that the guest was asked for at `asked`. Where it has had
  /// its time and has not answered, it hangs: nothing in it could be ended any more, and the pod
  /// would be there for ever. Its machine is killed, which is success. Else: `error`.
  Status KillIfItHangs(Error error, std::chrono::steady_clock::time_point asked);

  /// As `process.oomScoreAdj` of the root, and of a further container.
  void SetOomScore(const std::string& container, std::optional<int> score);
  void DropOomScore(const std::string& container);

  /// Ends the machine, politely first, and removes every trace. Again: success. `limit`: for the
  /// guest to end by itself; without: some seconds of the call's time.
  Status Shutdown(std::chrono::milliseconds limit);
  Status Shutdown();

 private:
  /// Of one machine: what is told of one that has been let go is not the next one's.
  PodMachineEvents Events();
  void OnReconnected();
  void OnMachineEnded(const Error& why, std::optional<uint64_t> machine);
  /// The kernel has killed in the machine's cgroups since it was started.
  bool WasKilledForMemory() const;
  void ApplyOomScore();
  void Set(PodRecord record);

  const SandboxId id_;
  SandboxContext& context_;
  const Patience patience_;
  ProcessEnds ends_;
  OomScores oom_scores_;
  std::atomic<bool> booted_ = false;
  std::atomic<bool> has_files_ = false;
  std::atomic<bool> is_lost_ = false;
  mutable Mutex mutex_;
  PodRecord record_ GANTRY_GUARDED_BY(mutex_);
  /// Last, so that it is destroyed first: its events use what is above.
  const std::unique_ptr<PodMachine> machine_;
};

}  // namespace gantry::vmm
