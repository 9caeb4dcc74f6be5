// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <gantry/testing/container_context.h>

#include "core/testing/limits.h"

namespace gantry {

Status FakeContainerContext::UseCgroupsOf(const HostProcess& host) {
  cgroups_of = host.pid();
  return {};
}

Result<std::vector<std::string>> FakeContainerContext::MakeCgroups(CgroupDevices devices) {
  made_cgroups = devices;
  return cgroups;
}

Result<InsideHooks> FakeContainerContext::BeginHooks() { return inside_hooks; }

Status FakeContainerContext::RunHooks(HookPoint point, HostPid) {
  hooks.push_back(point);
  return {};
}

void FakeContainerContext::UseStateDirs(std::vector<std::string> dirs) {
  state_dirs = std::move(dirs);
}

void FakeContainerContext::UseCleanup(HostCommand command) { cleanup = std::move(command); }

void FakeContainerContext::OutOfMemory() { events.Add("out of memory"); }

Status FakeContainerContext::Save(std::string text) {
  return fakes::KeepBlob(std::move(text), blob);
}

}  // namespace gantry
