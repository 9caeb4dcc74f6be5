// SPDX-License-Identifier: Apache-2.0
//
// Whether a file may be loaded as a plugin: who could have written it, and
// whether it is a shared object of this machine at all. Nothing of it runs.
#pragma once

#include <string>

#include <gantry/error.h>

namespace gantry::plugin {

/// Errors: those of `PluginHost::Load` that concern the file.
Status CheckPluginFile(const std::string& path);

}  // namespace gantry::plugin
