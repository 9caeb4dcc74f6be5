// SPDX-License-Identifier: Apache-2.0
//
// What a VMM sees of the node. A guest that broke out of it is to find neither the node's
// configuration nor what others run: of files only those of the VMM's own package and libraries,
// for reading, and the directory of its machine.
#pragma once

#include <string>
#include <vector>

#include <gantry/host_process.h>

#include "plugins/vmm/hypervisor/hypervisor.h"

namespace gantry::vmm {

/// For `SpawnRequest::root_paths`: `/usr` and what the dynamic linker looks for, the folder that
/// `program` is installed in (`/opt/x` of `/opt/x/bin/qemu`), the devices of all VMMs, what this
/// one opens by name, and `more`. What is not on this node is left out, and what is in something
/// else of it. Thread: any. Blocks: for the file system.
std::vector<RootPath> RootOf(const std::string& program, const Hypervisor& hypervisor,
                             const std::vector<RootPath>& more);

}  // namespace gantry::vmm
