// SPDX-License-Identifier: Apache-2.0
//
// Whether memory was why a sandbox, or a container in it, has ended. All that its containers
// allocate is the sentry's, in one cgroup of the host, so where the limit of that one or of the
// pod is reached the kernel kills the sentry, and with it all of them, or a gofer, and with it
// one. How often it has done so is in the cgroup before the process ends.
#pragma once

#include <memory>

#include <gantry/host_process.h>

#include "plugins/gvisor/pod/pod.h"

namespace gantry::gvisor {

/// Whether it was killed, and the kernel has killed in the sandbox for want of memory.
/// `process`: the sentry or a gofer, of which others say that it has ended; null: it is not
/// known any more how. Blocks: until the keeper has said it, at most a moment. Thread: workers.
bool KilledForMemory(const Pod& pod, const std::shared_ptr<HostProcess>& process);

/// To be done before its cgroups are removed: there may be containers yet that ask. Nothing
/// where the sentry runs. Blocks: for a write. Thread: workers.
void KeepWhetherMemoryEndedIt(Pod& pod);

}  // namespace gantry::gvisor
