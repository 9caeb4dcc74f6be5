// SPDX-License-Identifier: Apache-2.0
//
// Where the parts of gantry find each other.
#pragma once

#include <cstdint>
#include <string>

#include <gantry/error.h>

namespace gantry::link {

/// Where the keeper is asked, in the run directory.
inline constexpr char kControlSocket[] = "keeper.sock";

/// How large gantry.log in the run directory gets before another one is begun: the keeper
/// looks when it starts an engine, and the engine while it lives.
inline constexpr int64_t kMaxLogBytes = int64_t{16} << 20;

/// $GANTRY_RUN_DIR, or /run/gantry. Without a slash at its end.
std::string RunDir();

/// Absolute path of one of gantry's programs ("gantryd", "gantry-keeper"): in
/// $GANTRY_LIBEXEC_DIR if that is set, else beside the running program, else in
/// ../libexec/gantry from there, else where gantry was built to be installed. Errors: kNotFound.
Result<std::string> FindProgram(const std::string& name);

}  // namespace gantry::link
