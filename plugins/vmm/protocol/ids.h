// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace gantry::vmm::protocol {

/// Whether it may be the id of a container or an exec: it becomes a part of file names in the
/// guest, and of log lines on the host. 1 to 128 of letters, digits, `.`, `_` and `-`, not a dot
/// first. Thread: any.
bool IsId(std::string_view id);

}  // namespace gantry::vmm::protocol
