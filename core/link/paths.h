// SPDX-License-Identifier: Apache-2.0
//
// Where the parts of gantry find each other.
#pragma once

#include <string>

#include <gantry/error.h>

namespace gantry::link {

/// Where the keeper is asked, in the run directory.
inline constexpr char kControlSocket[] = "keeper.sock";

/// $GANTRY_RUN_DIR, or /run/gantry. Without a slash at its end.
std::string RunDir();

/// Absolute path of one of gantry's programs ("gantryd", "gantry-keeper"): in
/// $GANTRY_LIBEXEC_DIR if that is set, else beside the running program, else in
/// ../libexec/gantry from there, else where gantry was built to be installed. Errors: kNotFound.
Result<std::string> FindProgram(const std::string& name);

}  // namespace gantry::link
