// SPDX-License-Identifier: Apache-2.0
//
// The text of a mountinfo file, whose paths and sources are named by containers.
#include <gantry/toolkit/mount/mount_info.h>

#include "tests/fuzz/fuzz.h"

namespace gantry::fuzz {

void FuzzOne(std::string_view input) {
  for (const mount::MountPoint& mount : mount::ParseMountInfo(input)) {
    Require(!mount.path.empty() && !mount.type.empty(), "a line has a path and a type");
    Require(mount.path.size() <= input.size(), "a path is a part of the text");
  }
}

}  // namespace gantry::fuzz
