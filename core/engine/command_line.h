// SPDX-License-Identifier: Apache-2.0
//
// gantryd's command line and environment.
#pragma once

#include <optional>
#include <string>

#include <gantry/error.h>

namespace gantry::engine {

struct CommandLine {
  /// The configuration; absent: built-in defaults.
  std::string config;
  std::string run_dir;
  /// Where gantry's own files are: plugins/ below it.
  std::string libexec;
  /// Another engine is in charge, and this one is to take its place.
  bool standby = false;
  bool help = false;
  bool version = false;
  /// `--probe-plugin PATH NAME`: inspect a plugin in a process of its own.
  std::string probe_path;
  std::string probe_name;
  /// `--features`: what containers of `handler` can have; see features.h.
  bool features = false;
  std::string handler;
  /// The type URL of the runtime options on stdin.
  std::string options_type;
};

/// Options win over GANTRY_CONFIG, GANTRY_RUN_DIR, GANTRY_LIBEXEC_DIR. The keeper sets
/// GANTRY_STANDBY.
/// Errors: kInvalidArgument.
Result<CommandLine> ParseCommandLine(int argc, char** argv);

std::string Usage();

}  // namespace gantry::engine
