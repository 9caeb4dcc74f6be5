// SPDX-License-Identifier: Apache-2.0
//
// Block devices of the node that become disks of a guest.
#pragma once

#include <cstdint>
#include <string>

#include <gantry/error.h>

namespace gantry::vmm {

/// The device file of a block device. Errors: kInvalidArgument: the node has no such device.
/// Source: sysfs, /sys/dev/block. Blocks: on files. Thread: any.
Result<std::string> DiskFileOf(uint32_t major, uint32_t minor);

/// Nobody has mounted it or has it for himself, in whatever mount namespace: two kernels that write
/// to one file system destroy it. A file that is no block device: success. Errors:
/// kFailedPrecondition: somebody has. Blocks: as opening a device does. Thread: any.
Status CheckUnused(const std::string& path);

}  // namespace gantry::vmm
