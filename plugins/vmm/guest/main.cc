// SPDX-License-Identifier: Apache-2.0
//
// gantry-agent: the first process of a guest. It never ends: its end is the kernel's, and so the
// machine's, whose console has said why then.
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include <gantry/toolkit/files/files.h>

#include "plugins/vmm/guest/agent.h"
#include "plugins/vmm/guest/devices.h"
#include "plugins/vmm/guest/first.h"
#include "plugins/vmm/guest/machine.h"
#include "plugins/vmm/guest/modules.h"

namespace gantry::vmm::guest {
namespace {

constexpr const char* kEarlyModules = "/modules/early";
constexpr const char* kLateModules = "/modules/late";

Status RunAgent() {
  GANTRY_CHECK_OK(LeaveInitramfs());
  GANTRY_CHECK_OK(MountSystem());
  ::umask(0022);
  GANTRY_CHECK_OK(LoadModules(kEarlyModules));
  GANTRY_TRY(DeviceEvents events, DeviceEvents::Listen());
  Machine machine;
  GANTRY_TRY(const auto agent, Agent::Make(machine, {.folder = kContainersFolder}));
  GANTRY_CHECK_OK(LoadModulesInChild(kLateModules));
  const Loop::Watch on_devices =
      agent->loop().On(events.fd(), EPOLLIN, [&agent, &events](uint32_t) {
        events.Drain();
        agent->DeviceCame();
      });
  return agent->Run();
}

}  // namespace
}  // namespace gantry::vmm::guest

int main() {
  // In a container it may be somebody's `#!/proc/self/exe`.
  if (::getpid() != 1 || !gantry::Exists("/modules/early")) {
    std::fputs("gantry-agent: it is the first process of a guest, and nothing else\n", stderr);
    return 1;
  }
  const gantry::Status ended = gantry::vmm::guest::RunAgent();
  std::fprintf(stderr, "gantry-agent: %s\n", ended ? "" : ended.error().message.c_str());
  return 1;
}
