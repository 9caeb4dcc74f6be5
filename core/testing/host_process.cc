// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <utility>

#include <gantry/deadline.h>
#include <gantry/testing/host_process.h>
#include <gantry/toolkit/process/backoff.h>
#include <gantry/toolkit/process/pidfd.h>

#include "core/testing/children.h"
#include "core/testing/spawn.h"

namespace gantry {

FakeHostProcess::FakeHostProcess(ProcessId process, UniqueFd pidfd)
    : process_(process), pidfd_(std::move(pidfd)) {}

FakeHostProcess::~FakeHostProcess() {
  if (!Collect()) {
    constexpr std::chrono::seconds kLimit{10};
    IgnoreError(SendSignal(pidfd_.get(), SIGKILL), "it may have ended");
    IgnoreError(Await(kLimit), "the test ends anyhow");
  }
}

Status FakeHostProcess::Signal(int signal) {
  if (Collect() || !SendSignal(pidfd_.get(), signal)) {
    return Fail(Code::kNotFound, "process already finished");
  }
  return {};
}

std::optional<WaitStatus> FakeHostProcess::Ended() const { return Collect(); }

Result<WaitStatus> FakeHostProcess::Wait(std::chrono::milliseconds limit) { return Await(limit); }

std::optional<WaitStatus> FakeHostProcess::Collect() const {
  const MutexLock lock(mutex_);
  if (!ended_) {
    ended_ = fakes::Children::Of().Ended(process_.pid);
  }
  return ended_;
}

Result<WaitStatus> FakeHostProcess::Await(std::chrono::milliseconds limit) const {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  // In turns: the first process of a pid namespace ends only when somebody collects the orphans
  // of that namespace, and one that has ended need not be a child of the test yet.
  Backoff backoff({.no_event = "an orphan's coming here has no event",
                   .first = std::chrono::milliseconds(1),
                   .longest = std::chrono::milliseconds(10)});
  const bool in_turns = fakes::Children::Of().AdoptsOrphans();
  pollfd one = {pidfd_.get(), POLLIN, 0};
  for (;;) {
    if (const auto ended = Collect()) {
      return *ended;
    }
    if (in_turns ? !backoff.Sleep(deadline) : poll(&one, 1, PollTimeout(deadline)) == 0) {
      return Fail(Code::kDeadlineExceeded, "wait for process {}: it runs still", process_.pid);
    }
  }
}

Result<std::shared_ptr<FakeHostProcess>> RunShell(const std::string& script) {
  SpawnRequest request;
  request.argv = {"/bin/sh", "-c", script};
  request.env = {"PATH=/usr/bin:/bin"};
  return fakes::Spawn(request);
}

}  // namespace gantry
