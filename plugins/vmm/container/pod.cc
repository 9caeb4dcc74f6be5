// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/container/pod.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/cgroup/counters.h>

#include "plugins/vmm/protocol/reports.h"

namespace gantry::vmm {
namespace {

/// For the guest to answer; under TCG on a busy node it is slow.
constexpr std::chrono::seconds kStep{60};
/// Of a start that nobody limits: more than any `boot_timeout_ms`, which is the guest's own.
constexpr std::chrono::minutes kBoot{11};
/// For the agent to end what runs, and to write what is not written yet.
constexpr std::chrono::seconds kPolitely{5};

}  // namespace

PodRecord Pod::record() const {
  const MutexLock lock(mutex_);
  return record_;
}

void Pod::Set(PodRecord record) {
  const MutexLock lock(mutex_);
  record_ = std::move(record);
}

Deadline Pod::StepDeadline() const {
  return std::chrono::steady_clock::now() +
         std::min<std::chrono::milliseconds>(context_.TimeLeft(), kStep);
}

PodMachineEvents Pod::Events() {
  const uint64_t machine = ends_.OnMachineStarted();
  return {.exited = [this](const AgentExit& exit) { ends_.OnExited(exit); },
          .out_of_memory = [this](const std::string& container,
                                  uint64_t kills) { ends_.OnOutOfMemory(container, kills); },
          .reconnected = [this] { OnReconnected(); },
          .ended = [this, machine](const Error& why) { OnMachineEnded(why, machine); }};
}

// What it told in between is lost, but it keeps how each process has ended. While the machine is
// being taken up its containers ask for themselves.
void Pod::OnReconnected() {
  if (!booted_) {
    return;
  }
  const auto say = [this](const Error& error) {
    context_.Log(LogLevel::kWarning, "ask the guest what has ended: " + error.message);
  };
  const Status asked = machine_->guest().Post(
      protocol::List{}, [this, say](const Result<protocol::ListAnswer>& list) {
        if (list) {
          ends_.OnListed(*list);
        } else {
          say(list.error());
        }
      });
  if (!asked) {
    say(asked.error());
  }
}

void Pod::OnMachineEnded(const Error& why, std::optional<uint64_t> machine) {
  const bool out_of_memory = WasKilledForMemory();
  context_.Log(
      LogLevel::kError,
      Format("its machine has ended, and all containers with it{}: {}",
             out_of_memory ? " (the kernel has killed for want of memory)" : "", why.message));
  ends_.OnMachineEnded(out_of_memory, machine);
}

bool Pod::WasKilledForMemory() const {
  const PodRecord known = record();
  return cgroup::OomKills(known.cgroups) > known.oom_kills;
}

Status Pod::Boot(std::string root, PodMachineRequest request) {
  PodRecord record{.root = std::move(root),
                   .cgroups = request.cgroups,
                   .netns = request.netns_path,
                   .oom_kills = cgroup::OomKills(request.cgroups),
                   .machine = {}};
  Set(record);
  // Before there is anything that the next engine would have to find.
  GANTRY_CHECK_OK(context_.Save(EncodeProto(record)));
  // There may be one that was recovered, of a start that the core has undone since.
  booted_ = false;
  has_files_ = false;
  const Deadline deadline = std::chrono::steady_clock::now() +
                            std::min<std::chrono::milliseconds>(context_.TimeLeft(), kBoot);
  GANTRY_CHECK_OK(machine_->Start(std::move(request), Events(), deadline));
  booted_ = true;
  has_files_ = true;
  record.machine = machine_->Save();
  Status saved = context_.Save(EncodeProto(record));
  if (!saved) {
    IgnoreError(machine_->Shutdown({}), "the first error counts");
    has_files_ = false;
    return saved;
  }
  Set(std::move(record));
  return {};
}

Status Pod::Recover(const std::string& blob, PodMachineRequest request) {
  if (blob.empty()) {
    return {};
  }
  auto record = ReadPodRecord(blob);
  if (record) {
    request.cgroups = record->cgroups;
    request.netns_path = record->netns;
  } else {
    context_.Log(LogLevel::kError, record.error().message + "; its machine is ended");
    is_lost_ = true;
    record = PodRecord{.cgroups = request.cgroups, .netns = request.netns_path};
  }
  Set(*record);
  Status recovered = machine_->Recover(request, record->machine, Events(), StepDeadline());
  if (!recovered && recovered.error().code != Code::kNotFound) {
    return recovered;
  }
  // One that was on record and is not there any more has ended.
  booted_ = recovered || is_lost_ || !record->machine.empty();
  has_files_ = recovered.has_value();
  if (!recovered) {
    ends_.OnMachineEnded(WasKilledForMemory());
  } else if (const auto why = machine_->ended()) {
    OnMachineEnded(*why, {});
  }
  return {};
}

Result<HostPid> Pod::MachinePid() const {
  const auto process = IsAlive() ? machine_->guest().process() : nullptr;
  if (!process) {
    return Fail(Code::kUnavailable, "sandbox '{}': its machine has ended", id_.str());
  }
  return process->pid();
}

Status Pod::KillIfItHangs(Error error, std::chrono::steady_clock::time_point asked) {
  const auto process = IsAlive() ? machine_->guest().process() : nullptr;
  if (error.code != Code::kDeadlineExceeded || !process ||
      std::chrono::steady_clock::now() - asked < patience_.answer) {
    return std::unexpected(std::move(error));
  }
  context_.Log(LogLevel::kError, Format("{}: its machine hangs, and is killed", error.message));
  return process->Ended() ? Status() : process->Signal(SIGKILL);
}

void Pod::SetOomScore(const std::string& container, std::optional<int> score) {
  if (container == record().root) {
    oom_scores_.SetRoot(score);
  } else {
    oom_scores_.Add(container, score);
  }
  ApplyOomScore();
}

void Pod::DropOomScore(const std::string& container) {
  oom_scores_.Remove(container);
  ApplyOomScore();
}

void Pod::ApplyOomScore() {
  if (const auto process = IsAlive() ? machine_->guest().process() : nullptr) {
    gantry::SetOomScore(context_, *process, oom_scores_.OfSandbox());
  }
}

Status Pod::Shutdown() {
  return Shutdown(std::min<std::chrono::milliseconds>(context_.TimeLeft(), kPolitely));
}

Status Pod::Shutdown(std::chrono::milliseconds limit) {
  GANTRY_CHECK_OK(machine_->Shutdown(limit));
  has_files_ = false;
  // Nobody else tells of an end that was asked for.
  ends_.OnMachineEnded(false);
  return {};
}

}  // namespace gantry::vmm
