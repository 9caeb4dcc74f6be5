// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/container/guest_process.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include <gantry/format.h>

#include "plugins/vmm/agent/events.h"

namespace gantry::vmm {
namespace {

constexpr size_t kMaxWarnings = 8;
constexpr size_t kMaxWarning = 256;

}  // namespace

std::string GuestProcess::Name() const {
  return exec_.empty() ? Format("container '{}'", container_)
                       : Format("exec '{}' in container '{}'", exec_, container_);
}

Status GuestProcess::Finished(bool all) const {
  // A container that has no process any more has none that lacks the signal.
  return all ? Status() : Fail(Code::kNotFound, "signal {}: process already finished", Name());
}

void GuestProcess::LogWarnings(const protocol::CreateAnswer& made) {
  for (size_t i = 0; i < std::min(made.warnings.size(), kMaxWarnings); ++i) {
    pod_->context().Log(
        LogLevel::kWarning,
        Format("{}: {}", Name(), PrintableLine(made.warnings[i].substr(0, kMaxWarning))));
  }
}

Status GuestProcess::Start() {
  pod_->ends().Starting(container_, exec_);
  const auto started = pod_->Call(protocol::Start{.container = container_, .exec = exec_});
  return started ? Status() : std::unexpected(started.error());
}

bool GuestProcess::IsOverdue() {
  const auto now = std::chrono::steady_clock::now();
  const MutexLock lock(mutex_);
  if (!killed_at_) {
    killed_at_ = now;
  }
  return now - *killed_at_ > pod_->patience().end;
}

Status GuestProcess::Signal(uint32_t signal, bool all) {
  if (!pod_->IsAlive()) {
    return Finished(all);
  }
  const auto asked = std::chrono::steady_clock::now();
  if (signal == SIGKILL && !report_->told() && IsOverdue()) {
    const auto process = pod_->machine().guest().process();
    pod_->context().Log(LogLevel::kError,
                        Format("{} was killed and has not ended: its machine is killed", Name()));
    return process == nullptr || process->Ended() ? Status() : process->Signal(SIGKILL);
  }
  const auto sent = pod_->Call(
      protocol::Signal{.container = container_, .exec = exec_, .signal = signal, .all = all});
  if (sent) {
    return {};
  }
  if (!pod_->IsAlive()) {
    return Finished(all);
  }
  if (sent.error().code == Code::kNotFound) {
    return Finished(false);
  }
  Error error = Error(sent.error()).Within(Format("signal {}", Name()));
  return signal == SIGKILL ? pod_->KillIfItHangs(std::move(error), asked)
                           : Status(std::unexpected(std::move(error)));
}

Status GuestProcess::Resize(ConsoleSize size) {
  const auto resized = pod_->Call(protocol::Resize{
      .container = container_, .exec = exec_, .width = size.width, .height = size.height});
  return resized ? Status() : std::unexpected(resized.error());
}

Status GuestProcess::Delete() {
  const auto asked = std::chrono::steady_clock::now();
  if (pod_->IsAlive()) {
    const auto deleted = pod_->Call(protocol::Delete{.container = container_, .exec = exec_});
    if (!deleted && pod_->IsAlive()) {
      Error error = Error(deleted.error()).Within(Format("delete {}", Name()));
      if (error.code == Code::kDeadlineExceeded) {
        GANTRY_CHECK_OK(pod_->KillIfItHangs(std::move(error), asked));
      } else {
        pod_->context().Log(LogLevel::kError,
                            error.message + "; what is left of it ends with its machine");
      }
    }
  }
  return {};
}

Result<std::optional<protocol::ProcessReport>> GuestProcess::Find() {
  GANTRY_TRY(const protocol::ListAnswer list, pod_->Call(protocol::List{}));
  for (const protocol::ContainerReport& one : list.containers) {
    if (one.container != container_) {
      continue;
    }
    if (exec_.empty() && one.oom_kills > 0) {
      pod_->ends().OnOutOfMemory(container_, one.oom_kills);
    }
    const auto found = std::ranges::find(one.processes, exec_, &protocol::ProcessReport::exec);
    return found == one.processes.end() ? std::nullopt : std::optional(*found);
  }
  return std::optional<protocol::ProcessReport>();
}

}  // namespace gantry::vmm
