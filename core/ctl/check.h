// SPDX-License-Identifier: Apache-2.0
//
// `gantryctl check`: would the engine take this file, and if not, why.
#pragma once

#include <string>

#include <gantry/error.h>

#include "core/config/config.h"
#include "core/ctl/node.h"

namespace gantry::ctl {

/// What is in the configuration, as a table. The backend of each handler is loaded and checks
/// its options. Errors: why the engine would serve no container of a handler, with its place in
/// the file: the backend's as it is loaded, and those of `backend::CheckOptions`.
Result<std::string> CheckConfig(const config::Config& config, const Node& node);

/// `NAME VERSION` of a plugin. `name` is what the configuration calls it;
/// empty: NAME of libgantry_NAME.so. The file is loaded and its backend made, with
/// the options that `config` has for it, in a process of its own (`probe`: this
/// program, which must handle `--probe-plugin PATH NAME OPTIONS`).
/// Errors: the reason for which the engine would refuse it, as the engine says it.
Result<std::string> CheckPlugin(const std::string& probe, const std::string& path,
                                const std::string& name, const config::Config& config);

/// A file that should be a plugin: by its name, or because it is an ELF object.
bool LooksLikePlugin(const std::string& path);

}  // namespace gantry::ctl
