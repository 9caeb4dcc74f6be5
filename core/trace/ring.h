// SPDX-License-Identifier: Apache-2.0
//
// The ring, read: by who begins to write it, and by gantryctl, whether an engine writes it or not.
#pragma once

#include <string>
#include <vector>

#include <gantry/error.h>

#include "core/trace/step.h"

namespace gantry::trace {

/// All whole steps in the order in which they began. One that is being written just now may be
/// missing. Errors: kDataLoss: it is no ring; the errno's. Blocks: for the file.
Result<std::vector<Step>> ReadRing(int ring);
/// That of a run directory. Errors: also kNotFound: no engine has run there since the node began.
Result<std::vector<Step>> ReadRing(const std::string& run_dir);

}  // namespace gantry::trace
