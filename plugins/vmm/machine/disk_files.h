// SPDX-License-Identifier: Apache-2.0
//
// Disks for a VMM that opens them itself, by their paths, as a user of its own and in a root of its
// own: root's files, in folders of root's. Each is bound to a place in the machine's directory
// (vm/disk-NAME), where that user owns it. The mount is gone with the machine's directory.
#pragma once

#include <string>

#include <gantry/error.h>

#include "plugins/vmm/machine/directory.h"

namespace gantry::vmm {

/// The path by which the machine's VMM opens `file`, found again by the disk's serial. Again: the
/// same. Errors: kFailedPrecondition: the file
/// system shows files as no other user's (Linux, mount_setattr(2), lists those that do), and the
/// file is not for everybody. Blocks: on mounts.
Result<std::string> LetOpen(const MachineDirectory& directory, const MachineUser& user,
                            const std::string& serial, const std::string& file);
/// The VMM has closed it. Again: nothing.
Status CloseFile(const MachineDirectory& directory, const std::string& serial);

}  // namespace gantry::vmm
