// SPDX-License-Identifier: Apache-2.0
//
// What the core lends to a sandbox: processes are started as the keeper starts them, and are
// children of the test.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <gantry/context.h>
#include <gantry/toolkit/process/process_id.h>

#include "core/os/fs.h"
#include "core/os/process.h"

namespace gantry {

/// A child of the test, killed with this object.
class FakeHostProcess : public HostProcess {
 public:
  explicit FakeHostProcess(os::SpawnResult spawned);
  ~FakeHostProcess() override;

  HostPid pid() const override { return {process_.pid}; }

  uint64_t start_time() const override { return process_.start_time; }

  Status Signal(int signal) override;
  std::optional<WaitStatus> Ended() const override;
  Result<WaitStatus> Wait(std::chrono::milliseconds limit) override;

 private:
  const ProcessId process_;
  const UniqueFd pidfd_;
  /// Guards what follows.
  mutable std::mutex mutex_;
  mutable std::optional<WaitStatus> ended_;
};

/// Thread: any for `Spawn`.
class FakeSandboxContext : public SandboxContext {
 public:
  Result<std::shared_ptr<HostProcess>> Spawn(SpawnRequest request) override;
  Result<std::shared_ptr<HostProcess>> Adopt(HostPid pid) override;
  Result<std::shared_ptr<HostProcess>> Recover(HostPid pid, uint64_t start_time) override;

  std::shared_ptr<HostProcess> FindSpawned(std::string_view tag) override;

  Result<std::unique_ptr<Watch>> WatchReadable(int fd, std::function<void()> ready) override;

  Status Bind(std::shared_ptr<HostProcess>) override { return {}; }

  void SetPid(HostPid) override {}

  void Exited(ExitStatus) override {}

  Status Store(std::string_view name, const UniqueFd& fd) override;
  Result<UniqueFd> Take(std::string_view name) override;
  void Drop(std::string_view name) override;

  Status Save(std::string text) override {
    blob = std::move(text);
    return {};
  }

  void Log(LogLevel, std::string_view message) override { log.emplace_back(message); }

  void Count(std::string_view, uint64_t) override {}

  std::chrono::milliseconds TimeLeft() const override { return time_left; }

  /// Of those that were spawned how many have not ended.
  size_t Alive() const;

  std::string blob;
  std::map<std::string, UniqueFd, std::less<>> stored;
  std::vector<std::string> log;
  std::vector<std::string> tags;
  /// By their tags, what an engine before this one has started.
  std::map<std::string, std::shared_ptr<HostProcess>, std::less<>> left;
  std::vector<std::shared_ptr<HostProcess>> spawned;
  std::chrono::milliseconds time_left = std::chrono::milliseconds::max();

 private:
  /// Guards `tags` and `spawned` while `Spawn` runs.
  std::mutex mutex_;
};

/// Names in the directory, in order.
std::vector<std::string> NamesIn(const std::string& directory);

}  // namespace gantry
