// SPDX-License-Identifier: Apache-2.0
//
// A process of the host that is a child of the test. It is a real one: it has its namespaces,
// cgroups and limits, sends and gets signals, and ends as it ends.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <gantry/host_process.h>
#include <gantry/toolkit/process/process_id.h>
#include <gantry/toolkit/sync/mutex.h>

namespace gantry {

/// Killed with SIGKILL and collected with this object, if it runs still. Thread: any.
class FakeHostProcess : public HostProcess {
 public:
  /// `pidfd` is of that process, which is a child of the test or becomes one.
  FakeHostProcess(ProcessId process, UniqueFd pidfd);
  FakeHostProcess(const FakeHostProcess&) = delete;
  FakeHostProcess& operator=(const FakeHostProcess&) = delete;
  /// Blocks: up to ten seconds, until it has ended.
  ~FakeHostProcess() override;

  HostPid pid() const override { return {process_.pid}; }

  uint64_t start_time() const override { return process_.start_time; }

  Status Signal(int signal) override;
  std::optional<WaitStatus> Ended() const override;
  Result<WaitStatus> Wait(std::chrono::milliseconds limit) override;

 private:
  std::optional<WaitStatus> Collect() const;
  Result<WaitStatus> Await(std::chrono::milliseconds limit) const;

  const ProcessId process_;
  const UniqueFd pidfd_;
  mutable Mutex mutex_;
  mutable std::optional<WaitStatus> ended_ GANTRY_GUARDED_BY(mutex_);
};

/// A child of the test that runs `/bin/sh -c SCRIPT`, with /usr/bin and /bin as its PATH and
/// /dev/null as its streams. Errors: the step that failed, with its errno. Thread: any.
Result<std::shared_ptr<FakeHostProcess>> RunShell(const std::string& script);

}  // namespace gantry
