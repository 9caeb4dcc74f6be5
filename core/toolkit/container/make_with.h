// SPDX-License-Identifier: Apache-2.0
//
// `Make` with a root that is made by others.
#pragma once

#include <gantry/toolkit/container/make.h>

#include "core/toolkit/container/root_steps.h"

namespace gantry::container {

/// As `Make`. `root`: used in the children's copies of it; null: the root stays the maker's.
Result<MadeProcess> MakeWith(const MakeRequest& request, RootSteps* root);

}  // namespace gantry::container
