// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gantry/unique_fd.h>

namespace gantry::vmm {

/// Of a new tap, which goes with it; none where that is not allowed.
UniqueFd MakeTap();

}  // namespace gantry::vmm
