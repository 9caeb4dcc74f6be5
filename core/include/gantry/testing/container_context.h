// SPDX-License-Identifier: Apache-2.0
//
// What the core lends to one container, for a test: it remembers what it is told.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <gantry/container.h>
#include <gantry/testing/event_log.h>
#include <gantry/testing/process_context.h>

namespace gantry {

/// Thread: the calls, any, one at a time; the members, while no call is under way.
class FakeContainerContext : public ContainerContext {
 public:
  /// `id`: see `FakeProcessContext`.
  explicit FakeContainerContext(const std::string& id) : process(id, events) {}

  ProcessContext& init() override { return process; }

  Status UseCgroupsOf(const HostProcess& host) override;
  Result<std::vector<std::string>> MakeCgroups(CgroupDevices devices) override;
  Result<InsideHooks> BeginHooks() override;
  Status RunHooks(HookPoint point, HostPid pid) override;
  void UseStateDirs(std::vector<std::string> dirs) override;
  void UseCleanup(HostCommand command) override;
  void OutOfMemory() override;
  /// Errors: kInvalidArgument above `kMaxSaved`.
  Status Save(std::string text) override;

  /// As a restart of the engine does: the init is neither bound nor has it ended, until the
  /// backend says so again; `blob` stays.
  void RestartEngine() { process.RestartEngine(); }

  /// To be set by the test: what `MakeCgroups` and `BeginHooks` give.
  std::vector<std::string> cgroups;
  InsideHooks inside_hooks;

  /// What the backend has said.
  EventLog events;
  /// The init's.
  FakeProcessContext process;
  /// The process whose cgroups the container's are.
  HostPid cgroups_of;
  /// What `MakeCgroups` was called with, if it was.
  std::optional<CgroupDevices> made_cgroups;
  /// The points at which hooks were to be run, and none is.
  std::vector<HookPoint> hooks;
  std::vector<std::string> state_dirs;
  std::optional<HostCommand> cleanup;
  std::string blob;
};

}  // namespace gantry
