// SPDX-License-Identifier: Apache-2.0
//
// The command that ends what containerd does not end.
#pragma once

#include <string>

#include <gantry/error.h>

#include "core/ctl/arguments.h"

namespace gantry::ctl {

/// `delete`: one that is left out since engines crashed of it, or with --all everything. Gives the
/// output. Errors: kNotFound: nothing of that id is left out; kInvalidArgument: it is not said
/// which; of the keeper. Blocks: for each that is ended.
Result<std::string> Delete(const Arguments& arguments);

}  // namespace gantry::ctl
