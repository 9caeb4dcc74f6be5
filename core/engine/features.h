// SPDX-License-Identifier: Apache-2.0
//
// `gantryd --features`: what a handler's containers can have. The shim's `-info` runs it,
// since only here are the configuration and the backends; no engine, and no keeper, is asked
// or made.
#pragma once

#include <string>

#include <gantry/error.h>

#include "core/config/config.h"
#include "core/engine/command_line.h"

namespace gantry::engine {

/// Whose features are wanted.
struct FeaturesQuestion {
  /// Of the runtime type; empty: the default handler, or the one that `options` name.
  std::string handler{};
  /// containerd's options for the runtime, as in an Any; both may be empty.
  std::string options_type{};
  std::string options{};
};

/// The features document of the OCI runtime spec, as the handler's backend gives it; empty: it
/// promises nothing. Errors: kInvalidArgument: no such handler, malformed options, or the
/// backend's text is no JSON object of at most 512 KiB; those of the configuration and of the
/// plugin's loading. Blocks: for the backend's answer. Runs the plugin's code: once in a process.
Result<std::string> FindFeatures(const config::Config& config, const CommandLine& line,
                                 const FeaturesQuestion& question);

/// Prints the document, which begins with `{`, or why there is none, which does not, and a
/// line's end, by which a whole answer is known: an empty document is that alone. Gives the
/// exit code. The options are read from stdin.
int PrintFeatures(const CommandLine& line);

}  // namespace gantry::engine
