// SPDX-License-Identifier: Apache-2.0
//
// Whether a file may be loaded as a plugin: who could have written it, and
// whether it is a shared object of this machine at all. Nothing of it runs.
#pragma once

#include <string>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::backend {

/// The file, which may be loaded, open for reading. Errors: those of `PluginHost::Load` that
/// concern the file. Blocks: for the file system.
Result<UniqueFd> OpenPluginFile(const std::string& path);

/// Whether what was loaded from `path` to `address` is the file that was looked at. It is loaded by
/// its path, with which debuggers and plugins find their files, and the path may lead to another
/// one by then. Errors: kAborted: it is another; kInternal: it cannot be told.
Status CheckLoaded(const UniqueFd& file, const void* address, const std::string& path);

}  // namespace gantry::backend
