// SPDX-License-Identifier: Apache-2.0
//
// A process to start, as the link carries it.
#pragma once

#include <vector>

#include <gantry/error.h>
#include <gantry/host_process.h>
#include <gantry/unique_fd.h>

#include "core/link/messages.h"

namespace gantry::keeper_client {

/// What the keeper is asked, without a tag. Owner: takes what the request holds; its descriptors,
/// and those of the cgroups that it names, go into `fds`. Errors: kInvalidArgument: the
/// controlling terminal is none of the descriptors. Thread: any. Blocks: for cgroupfs.
Result<link::Spawn> ToSpawnMessage(SpawnRequest& request, std::vector<UniqueFd>& fds);

}  // namespace gantry::keeper_client
