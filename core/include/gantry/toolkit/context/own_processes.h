// SPDX-License-Identifier: Apache-2.0
//
// For a backend's own program that an operator starts (`gantryctl NAME`): what the backend's code
// asks a `SandboxContext` for, where there is neither a keeper nor an engine. Processes are made
// as the keeper makes them, and are this program's children: it collects them, and they are killed
// when it ends.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include <gantry/context.h>

namespace gantry {

/// Spawns and logs; all else is kUnimplemented or does nothing. Nothing else in the program may
/// collect children that it has not made. Thread: any. In an archive with `gantry::testing`.
class OwnProcesses final : public SandboxContext {
 public:
  using LogLine = std::function<void(LogLevel level, std::string_view message)>;

  /// `log` is called on any thread, one call at a time or several.
  explicit OwnProcesses(LogLine log) : log_(std::move(log)) {}

  /// The thread that calls it lives as long as the process may: it is killed with it. An object
  /// that is destroyed kills and collects its process. Errors: of the step that failed.
  /// Blocks: until its program runs.
  Result<std::shared_ptr<HostProcess>> Spawn(SpawnRequest request) override;

  Result<std::shared_ptr<HostProcess>> Adopt(HostPid pid) override;
  Result<std::shared_ptr<HostProcess>> Recover(HostPid pid, uint64_t start_time) override;
  std::shared_ptr<HostProcess> FindSpawned(std::string_view tag) override;
  Result<std::unique_ptr<Watch>> WatchReadable(int fd, std::function<void()> ready) override;
  Status Bind(std::shared_ptr<HostProcess> process) override;

  void SetPid(HostPid /*pid*/) override {}

  void Exited(ExitStatus /*status*/) override {}

  Status Store(std::string_view name, const UniqueFd& fd) override;
  Result<UniqueFd> Take(std::string_view name) override;

  void Drop(std::string_view /*name*/) override {}

  Status Save(std::string blob) override;

  void Log(LogLevel level, std::string_view message) override { log_(level, message); }

  void Count(std::string_view /*name*/, uint64_t /*amount*/) override {}

 private:
  const LogLine log_;
};

}  // namespace gantry
