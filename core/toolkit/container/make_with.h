// SPDX-License-Identifier: Apache-2.0
//
// `Make` with a root that is made by others.
#pragma once

#include <gantry/toolkit/container/make.h>

#include "core/toolkit/container/joined.h"
#include "core/toolkit/container/root_steps.h"

namespace gantry::container {

/// As `Make`. `root`: used in the children's copies of it; null: the root stays the maker's.
Result<MadeProcess> MakeWith(MakeRequest request, RootSteps* root);

/// A process in the namespaces and cgroups of `joined`, of whose init `init` is a pidfd; `request`
/// names no namespaces.
Result<MadeProcess> MakeIn(MakeRequest request, const Joined& joined, int init);

}  // namespace gantry::container
