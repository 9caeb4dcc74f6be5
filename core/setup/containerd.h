// SPDX-License-Identifier: Apache-2.0
//
// containerd itself asked: which release it is, and what it makes of a configuration. Nothing of it
// is started but for the answer. Thread: any. Blocks: for the program, 20 s at most.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>

#include "core/setup/release.h"

namespace gantry::setup {

/// What a program writes, to its standard error as well where `with_errors`.
using Ask = std::function<Result<std::string>(
    const std::string& program, const std::vector<std::string>& arguments, bool with_errors)>;

/// Runs it. Errors: it cannot be run.
Result<std::string> RunProgram(const std::string& program,
                               const std::vector<std::string>& arguments, bool with_errors);

/// Errors: as `ParseRelease`, and where the program cannot be run.
Result<Release> ReleaseOf(const Ask& ask, const std::string& program);

/// `containerd config dump` of the file. Errors: kFailedPrecondition with containerd's words: it
/// would not start with it.
Result<std::string> DumpOf(const Ask& ask, const std::string& program, const std::string& config);

/// What a configuration is made of, to show it to containerd before it is there.
struct Draft {
  /// The whole text; or, where `imports` are said, nothing.
  std::string text = {};
  /// Files that are there.
  std::vector<std::string> imports = {};
  /// The text of a further one.
  std::string added = {};
  int version = 0;
};

/// The same of a draft, which is written to a folder in /tmp for it.
Result<std::string> DumpOf(const Ask& ask, const std::string& program, const Draft& draft);

}  // namespace gantry::setup
