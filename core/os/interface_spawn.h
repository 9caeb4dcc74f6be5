// SPDX-License-Identifier: Apache-2.0
//
// What a `SpawnRequest` of the interface asks for, as one of this folder: for programs that make
// such processes as their own children. The keeper reads it off its link.
#pragma once

#include <gantry/error.h>
#include <gantry/host_process.h>
#include <gantry/unique_fd.h>

#include "core/os/spawn.h"

namespace gantry::os {

/// Owner: `request` borrows the descriptors of the request that it is of, and of this.
struct InterfaceSpawn {
  SpawnRequest request;
  UniqueFd unified_cgroup;
};

/// The tag is left out. Errors: kInvalidArgument for a controlling terminal that is none of the
/// descriptors; of a cgroup, the errno's. Blocks: never. Thread: any.
Result<InterfaceSpawn> OfInterface(const gantry::SpawnRequest& from);

}  // namespace gantry::os
