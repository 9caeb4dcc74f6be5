// SPDX-License-Identifier: Apache-2.0
//
// What the first process of an initramfs does before anything else.
#pragma once

#include <gantry/error.h>

namespace gantry::vmm::guest {

/// What the agent keeps of containers, and where the host mounts: a file system of its own.
inline constexpr const char* kGuestFolder = "/run/gantry";
inline constexpr const char* kContainersFolder = "/run/gantry/containers";

/// The root becomes one that can be left by pivot_root(2), which an initramfs is not, and nobody
/// can write in it any more: a container whose program is `#!/proc/self/exe` must not reach the
/// agent's file. Source: CVE-2019-5736.
Status LeaveInitramfs();

/// /proc, /sys, /dev, /run, cgroups, and the console as standard streams. Errors: naming the mount.
Status MountSystem();

}  // namespace gantry::vmm::guest
