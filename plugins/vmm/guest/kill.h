// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gantry/error.h>
#include <gantry/toolkit/cgroup/cgroup.h>

namespace gantry::vmm::guest {

/// SIGKILL to all that is in it, once and without waiting; frozen processes die too.
Status KillOnce(const cgroup::Cgroup& cgroup);
/// The same; absent: nothing.
void KillNow(const cgroup::Cgroup& cgroup);

}  // namespace gantry::vmm::guest
