// SPDX-License-Identifier: Apache-2.0
//
// What files and the kernel say of gantry's processes and containers, for a bug report: also where
// neither keeper nor engine answers.
#pragma once

#include <string>
#include <vector>

#include <gantry/error.h>

#include "core/link/status_messages.h"

namespace gantry::ctl {

/// Kernel, distribution, memory and load.
std::string NodeText();

/// Of each process of gantry's own programs: its command line, limits, memory, descriptors, and
/// where in the kernel each of its threads is. Not of what runs in sandboxes.
std::string ProcessesText();

/// Where containers may have a record: what the keeper has announced, and, without `keeper`, what
/// is found below containerd's state directories.
std::vector<std::string> BundlesOf(const link::KeeperStatus* keeper,
                                   const std::vector<std::string>& containerd_state_dirs);

/// The record of a bundle as JSON, without environments, options, blobs and annotations' values.
/// Errors: as `store::Read`.
Result<std::string> RecordText(const std::string& bundle);

}  // namespace gantry::ctl
