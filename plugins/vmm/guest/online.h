// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <gantry/error.h>

#include "plugins/vmm/protocol/messages.h"

namespace gantry::vmm::guest {

/// Switches on what was plugged in: CPUs, and blocks of memory that the kernel has not switched on
/// by itself. Errors: kDeadlineExceeded: fewer CPUs came than are wanted. Blocks: up to the
/// request's time.
Result<protocol::OnlineAnswer> BringOnline(const protocol::Online& request);

/// One round in a tree such as /sys/devices/system: how many CPUs are on then.
Result<uint32_t> SwitchOn(const std::string& system);

}  // namespace gantry::vmm::guest
