// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <gantry/error.h>

#include "plugins/vmm/protocol/messages.h"

namespace gantry::vmm::guest {

/// All that `SetUp` says, in this order: clock, entropy, name, settings, network, files. Errors:
/// the first that fails, naming it. Blocks: for the kernel.
Status SetUpMachine(const protocol::SetUp& request);

/// What is done about a clock that is wrong by so much.
enum class ClockChange { kNone, kSlew, kStep };
ClockChange ChangeFor(int64_t difference_ns, bool step);

/// Of a setting of the kernel's, below /proc/sys; `net.ipv4.ip_forward` and `net/ipv4/ip_forward`.
/// Errors: kInvalidArgument: it is none.
Result<std::string> SettingPath(const std::string& name);

/// Where a file may be written: below /run, by no way round. Errors: kInvalidArgument.
Status CheckFilePath(const std::string& path);

}  // namespace gantry::vmm::guest
