// SPDX-License-Identifier: Apache-2.0
//
// What is mounted in the guest for its containers: disks by their serial, virtiofs by its tag, and
// what the kernel has by itself.
#pragma once

#include <string>

#include <gantry/error.h>

#include "plugins/vmm/protocol/messages.h"

namespace gantry::vmm::guest {

/// All directories of an absolute path that are missing, 0755. Errors: the errno's;
/// kInvalidArgument: no absolute path.
Status MakeDirectories(const std::string& path);

/// See agent.proto. Errors: kDeadlineExceeded: a device has not come; with the mount's number.
/// Blocks: for devices, as long as it says, and as file systems do.
Status AttachMounts(const protocol::Attach& request);
Status DetachMounts(const protocol::Detach& request);

}  // namespace gantry::vmm::guest
