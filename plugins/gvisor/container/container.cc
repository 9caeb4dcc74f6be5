// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/container/container.h"

#include <signal.h>

#include <chrono>
#include <set>
#include <utility>
#include <vector>

#include <gantry/format.h>
#include <gantry/toolkit/process/pidfd.h>

#include "plugins/gvisor/checkpoint/checkpoint.h"
#include "plugins/gvisor/container/exec.h"
#include "plugins/gvisor/pod/out_of_memory.h"

namespace gantry::gvisor {

Status SendSignal(Pod& pod, const SignalTarget& target, uint32_t signal) {
  const auto sentry = pod.sentry();
  if (!sentry || !pod.IsAlive()) {
    return Fail(Code::kNotFound, "signal container '{}': process already finished",
                target.container);
  }
  const auto sent = target.mode == SignalMode::kAll
                        ? sentry->SignalAll(target.container, signal, pod.StepDeadline())
                        : sentry->manager().Signal(target, signal, pod.StepDeadline());
  if (sent) {
    return {};
  }
  Error error = ToError(sent.error(), Format("signal container '{}'", target.container));
  if (error.code == Code::kNotFound || sent.error().cause == urpc::Cause::kGone) {
    error.code = Code::kNotFound;
    error.message += ": process already finished";
  }
  return std::unexpected(std::move(error));
}

void KillLeftovers(Pod& pod, const std::string& container) {
  constexpr int kRounds = 8;
  const auto sentry = pod.sentry();
  if (!sentry) {
    return;
  }
  const Deadline deadline = pod.StepDeadline();
  ContainerManager& manager = sentry->manager();
  std::set<uint32_t> killed;
  for (int round = 0; round < kRounds; ++round) {
    const auto left = manager.Processes(container, deadline);
    const size_t before = killed.size();
    for (const ProcessLine& one : left ? *left : std::vector<ProcessLine>()) {
      if (!killed.insert(one.pid).second) {
        continue;
      }
      const auto sent = manager.Signal(
          {.container = container, .pid = static_cast<int32_t>(one.pid)}, SIGKILL, deadline);
      if (urpc::IsLate(sent)) {
        return;
      }
    }
    if (killed.size() == before) {
      return;
    }
  }
}

void GvisorContainer::RunPoststop() {
  IgnoreError(context_.RunHooks(HookPoint::kDelete, {}), "those that fail are logged");
}

void GvisorContainer::LogHooksLeftOut(const InsideHooks& hooks, bool gofer) const {
  const auto log = [this](std::string_view kind, std::string_view why) {
    pod_->context().Log(
        LogLevel::kWarning,
        Format("container '{}': its hooks of {} are not run: {}", id_.str(), kind, why));
  };
  if (hooks.create_container && !gofer) {
    log("createContainer", "a gofer of runsc since 2026-05 does, if it serves the root");
  }
  if (hooks.start_container) {
    log("startContainer", "they would be programs of the container, which gVisor does not run");
  }
}

Result<std::shared_ptr<Sentry>> GvisorContainer::RunningSentry() const {
  auto sentry = pod_->sentry();
  if (!sentry || !pod_->IsAlive()) {
    return Fail(Code::kUnavailable, "container '{}': its sandbox has ended", id_.str());
  }
  return sentry;
}

Status GvisorContainer::CheckMounts(const Spec& spec) const {
  if (spec.mapped_mount.empty()) {
    return {};
  }
  return Fail(Code::kFailedPrecondition,
              "create container '{}': the mount at '{}' is to be id-mapped otherwise than the "
              "container, which gVisor cannot do",
              id_.str(), spec.mapped_mount);
}

Status GvisorContainer::Signal(const SignalTarget& target, uint32_t signal) {
  const auto asked = std::chrono::steady_clock::now();
  if (Status sent = SendSignal(*pod_, target, signal); !sent) {
    return signal == SIGKILL ? pod_->KillIfItHangs(std::move(sent).error(), asked) : sent;
  }
  const auto sentry = pod_->sentry();
  if (signal == SIGKILL && sentry) {
    // What stands still does not end, and who kills it waits for that.
    IgnoreError(sentry->Resume(id_.str(), pod_->StepDeadline()), "then it ends when it is resumed");
  }
  return {};
}

Status GvisorContainer::RunPoststart() {
  const auto process = pod_->process();
  Status ran = context_.RunHooks(HookPoint::kStart, process ? process->pid() : HostPid());
  if (!ran) {
    IgnoreError(Signal({.container = id_.str()}, SIGKILL), "it may have ended by itself");
  }
  return ran;
}

Status GvisorContainer::KillAll(uint32_t signal) {
  Status sent = Signal({.container = id_.str(), .mode = SignalMode::kAll}, signal);
  // All that is none has had it, as with `runc kill --all`.
  return !sent && sent.error().code == Code::kNotFound ? Status() : sent;
}

Status GvisorContainer::Pause() {
  GANTRY_TRY(const auto sentry, RunningSentry());
  return sentry->Pause(id_.str(), pod_->StepDeadline());
}

Status GvisorContainer::Resume() {
  GANTRY_TRY(const auto sentry, RunningSentry());
  return sentry->Resume(id_.str(), pod_->StepDeadline());
}

Result<ContainerMetrics> GvisorContainer::Stats() {
  const Deadline deadline = pod_->StepDeadline();
  const StatsPlace place{.cgroups = pod_->record().place.cgroups,
                         .is_alone = pod_->root_kind() == ContainerKind::kAlone};
  const auto sentry = pod_->IsAlive() ? pod_->sentry() : nullptr;
  const auto end = End();
  if (sentry && !end) {
    GANTRY_TRY(const bool started, HasStarted());
    if (!started) {
      // The sentry has no processes of it, and refuses to be asked.
      return stats_.MeasureIdle(nullptr, place, false, deadline);
    }
    auto measured = stats_.Measure(sentry->manager(), place, deadline);
    if (measured || measured.error().code != Code::kNotFound) {
      return measured;
    }
  }
  const bool out_of_memory = end ? end->out_of_memory : KilledForMemory(*pod_, pod_->process());
  return stats_.MeasureIdle(sentry ? &sentry->manager() : nullptr, place, out_of_memory, deadline);
}

Status GvisorContainer::Checkpoint(const CheckpointRequest& request) {
  return pod_->record().root == id_.str() ? SaveSandbox(*pod_, request)
                                          : NotTheRoot(*pod_, "checkpoint", id_);
}

Result<std::vector<ProcessInfo>> GvisorContainer::Processes() {
  GANTRY_TRY(const auto sentry, RunningSentry());
  const auto lines = sentry->manager().Processes(id_.str(), pod_->StepDeadline());
  if (!lines) {
    return std::unexpected(
        ToError(lines.error(), Format("list the processes of container '{}'", id_.str())));
  }
  std::vector<ProcessInfo> processes;
  for (const ProcessLine& line : *lines) {
    processes.push_back({line.pid, execs_->Find(static_cast<int32_t>(line.pid))});
  }
  return processes;
}

Result<std::unique_ptr<Process>> GvisorContainer::Exec(const ExecRequest& request,
                                                       ProcessContext& context) {
  return std::make_unique<GvisorExec>(ExecPlace{id_, bundle_, pod_, execs_, rights_}, request,
                                      context);
}

Result<std::unique_ptr<Process>> GvisorContainer::RecoverExec(const ExecRequest& request,
                                                              ProcessContext& context,
                                                              bool started) {
  auto exec = std::make_unique<GvisorExec>(ExecPlace{id_, bundle_, pod_, execs_, rights_}, request,
                                           context);
  if (started) {
    GANTRY_CHECK_OK(exec->Recover());
  }
  return exec;
}

}  // namespace gantry::gvisor
