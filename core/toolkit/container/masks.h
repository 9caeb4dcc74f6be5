// SPDX-License-Identifier: Apache-2.0
//
// Paths of a container that its processes shall not read, or not write. One that is not there is
// left out.
#pragma once

#include <string>
#include <vector>

#include <gantry/error.h>

namespace gantry::container {

/// Each a mount of its own, read-only; what is mounted below stays as it is.
Status MakeReadOnly(int root, const std::vector<std::string>& paths);

/// An empty, read-only directory over a directory, /dev/null over everything else. `label`: the
/// SELinux label of the directories, empty for none. Errors: kFailedPrecondition: the root's
/// /dev/null is another device, or none.
Status MaskPaths(int root, const std::vector<std::string>& paths, const std::string& label);

}  // namespace gantry::container
