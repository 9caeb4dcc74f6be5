// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/guest/kill.h"

#include <csignal>

#include <gantry/toolkit/files/files.h>

namespace gantry::vmm::guest {

Status KillOnce(const cgroup::Cgroup& cgroup) {
  if (cgroup.is_unified() && WriteExisting(cgroup.DirOf("") + "/cgroup.kill", "1")) {
    return {};
  }
  Status sent = cgroup.Signal(SIGKILL);
  cgroup.ThawToDie();
  return sent;
}

void KillNow(const cgroup::Cgroup& cgroup) {
  IgnoreError(KillOnce(cgroup), "what is not there needs no end; who waits for it has a limit");
}

}  // namespace gantry::vmm::guest
