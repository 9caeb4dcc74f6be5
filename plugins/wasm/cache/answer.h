// SPDX-License-Identifier: Apache-2.0
//
// What gantry-wasm-compile has left, when it has ended. A module may have taken it over, so its
// words are read with limits.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <gantry/error.h>
#include <gantry/host_process.h>
#include <gantry/unique_fd.h>

#include "plugins/wasm/kind.h"

namespace gantry::wasm {

/// What it was allowed.
struct CompileBounds {
  std::chrono::milliseconds time{};
  uint64_t memory = 0;
  uint64_t output = 0;
};

/// Owner: the files are the caller's.
struct CompileEnd {
  /// Unset: it did not end in time and was killed.
  std::optional<WaitStatus> status;
  const UniqueFd& artifact;
  const UniqueFd& answer;
  /// Its standard error.
  const UniqueFd& errors;
};

/// Errors: as `Compiler::Compile`. Blocks: never. Thread: any.
Result<Kind> ReadAnswer(const CompileEnd& end, const CompileBounds& bounds);

/// The same of the answer's text. Errors: its own; kInternal: it is none.
Result<Kind> ParseAnswer(std::string_view text);

/// "ended with 1", "was killed by signal 9".
std::string EndWords(const WaitStatus& status);
/// With `?` for what is not ASCII or cannot be seen, cut to some hundred bytes.
std::string Printable(std::string_view text);
/// One line without spaces, with its end.
bool IsCompilerLine(std::string_view text);

}  // namespace gantry::wasm
