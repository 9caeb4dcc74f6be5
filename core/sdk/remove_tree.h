// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <gantry/error.h>

namespace gantry {

/// Removes the entry `name` of `dir`, and what is in it. What is mounted in it stays, and is an
/// error (kFailedPrecondition); links are not followed. Again: success.
Status RemoveTreeAt(int dir, const std::string& name);

}  // namespace gantry
