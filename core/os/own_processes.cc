// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <optional>
#include <utility>

#include <gantry/deadline.h>
#include <gantry/toolkit/context/own_processes.h>
#include <gantry/toolkit/process/pidfd.h>
#include <gantry/toolkit/sync/mutex.h>

#include "core/os/interface_spawn.h"

namespace gantry {
namespace {

std::unexpected<Error> NotHere(std::string_view what) {
  return Fail(Code::kUnimplemented, "{}: not in a program of an operator's", what);
}

class OwnProcess final : public HostProcess {
 public:
  explicit OwnProcess(os::SpawnResult spawned)
      : process_(spawned.process), pidfd_(std::move(spawned.pidfd)) {}

  OwnProcess(const OwnProcess&) = delete;
  OwnProcess& operator=(const OwnProcess&) = delete;

  ~OwnProcess() override {
    if (!Ended()) {
      constexpr std::chrono::seconds kDying{10};
      IgnoreError(SendSignal(pidfd_.get(), SIGKILL), "it may have ended");
      IgnoreError(Wait(kDying), "the program ends anyhow");
    }
  }

  HostPid pid() const override { return {process_.pid}; }

  uint64_t start_time() const override { return process_.start_time; }

  Status Signal(int signal) override {
    if (Ended() || !SendSignal(pidfd_.get(), signal)) {
      return Fail(Code::kNotFound, "process already finished");
    }
    return {};
  }

  std::optional<WaitStatus> Ended() const override {
    const MutexLock lock(mutex_);
    int raw = 0;
    if (!ended_ && waitpid(process_.pid, &raw, WNOHANG) == process_.pid) {
      ended_ = WaitStatus{.raw = raw,
                          .exited_at_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                                              std::chrono::system_clock::now().time_since_epoch())
                                              .count()};
    }
    return ended_;
  }

  Result<WaitStatus> Wait(std::chrono::milliseconds limit) override {
    const Deadline deadline = std::chrono::steady_clock::now() + limit;
    pollfd one = {.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
    for (;;) {
      if (const auto ended = Ended()) {
        return *ended;
      }
      if (poll(&one, 1, PollTimeout(deadline)) == 0) {
        return Fail(Code::kDeadlineExceeded, "wait for process {}: it runs still", process_.pid);
      }
    }
  }

 private:
  const ProcessId process_;
  const UniqueFd pidfd_;
  mutable Mutex mutex_;
  mutable std::optional<WaitStatus> ended_ GANTRY_GUARDED_BY(mutex_);
};

}  // namespace

Result<std::shared_ptr<HostProcess>> OwnProcesses::Spawn(SpawnRequest request) {
  GANTRY_TRY(os::InterfaceSpawn ready, os::OfInterface(request));
  ready.request.parent_death_signal = SIGKILL;
  GANTRY_TRY(os::SpawnResult spawned, os::SpawnProcess(ready.request));
  return std::make_shared<OwnProcess>(std::move(spawned));
}

Result<std::shared_ptr<HostProcess>> OwnProcesses::Adopt(HostPid /*pid*/) {
  return NotHere("adopt a process");
}

Result<std::shared_ptr<HostProcess>> OwnProcesses::Recover(HostPid /*pid*/,
                                                           uint64_t /*start_time*/) {
  return NotHere("recover a process");
}

std::shared_ptr<HostProcess> OwnProcesses::FindSpawned(std::string_view /*tag*/) { return nullptr; }

Result<std::unique_ptr<Watch>> OwnProcesses::WatchReadable(int /*fd*/,
                                                           std::function<void()> /*ready*/) {
  return NotHere("watch a descriptor");
}

Status OwnProcesses::Bind(std::shared_ptr<HostProcess> /*process*/) {
  return NotHere("bind a process");
}

Status OwnProcesses::Store(std::string_view /*name*/, const UniqueFd& /*fd*/) {
  return NotHere("store a descriptor");
}

Result<UniqueFd> OwnProcesses::Take(std::string_view /*name*/) {
  return NotHere("take a descriptor");
}

Status OwnProcesses::Save(std::string /*blob*/) { return NotHere("save a state"); }

}  // namespace gantry
