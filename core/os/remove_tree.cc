// SPDX-License-Identifier: Apache-2.0
//
// As in the SDK, under the names of this folder.
#include "core/sdk/remove_tree.h"

#include <gantry/files.h>

#include "core/os/fs.h"

namespace gantry::os {

Status RemoveTreeAt(int dir, const std::string& name) { return gantry::RemoveTreeAt(dir, name); }

Status RemoveTree(const std::string& path) { return gantry::RemoveTree(path); }

}  // namespace gantry::os
