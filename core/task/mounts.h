// SPDX-License-Identifier: Apache-2.0
//
// The mounts of a rootfs as a request names them.
#pragma once

#include <vector>

#include <gantry/toolkit/mount/mount.h>

namespace gantry::task {

/// `containerd.types.Mount`s, of whichever request.
template <class Mounts>
std::vector<mount::Mount> MountsOf(const Mounts& rootfs) {
  std::vector<mount::Mount> mounts;
  for (const auto& mount : rootfs) {
    mounts.push_back({mount.type(),
                      mount.source(),
                      mount.target(),
                      {mount.options().begin(), mount.options().end()}});
  }
  return mounts;
}

}  // namespace gantry::task
