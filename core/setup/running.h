// SPDX-License-Identifier: Apache-2.0
//
// The containerd that runs, and whether it can have read what is in the files now.
// Thread: any. Blocks: on files.
#pragma once

#include <string>

#include <gantry/error.h>

#include "core/setup/layout.h"

namespace gantry::setup {

/// What to tell about it, where it has read `file` since that was changed last, by the layout's
/// configuration. Errors: kFailedPrecondition: it has not, with what to restart; or it reads
/// another configuration; kUnavailable: none runs.
Result<std::string> CheckRunning(const Layout& layout, const std::string& file);

}  // namespace gantry::setup
