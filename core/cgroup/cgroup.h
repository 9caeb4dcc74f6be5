// SPDX-License-Identifier: Apache-2.0
//
// The toolkit's cgroups under the names that this room and core/task know them by.
#pragma once

#include <gantry/toolkit/cgroup/cgroup.h>
#include <gantry/toolkit/cgroup/hierarchy.h>
#include <gantry/toolkit/cgroup/resources.h>

namespace gantry::os {

using cgroup::Cgroup;
using cgroup::CgroupHierarchy;
using cgroup::CgroupMode;
using cgroup::CgroupResources;
using cgroup::CpuWeightFormula;

}  // namespace gantry::os
