// SPDX-License-Identifier: Apache-2.0
//
// JSON that somebody else wrote: a sentry, a gofer, an OCI runtime, a client. A document is
// looked at before anything is made of it, since what it takes in memory and stack has nothing to
// do with its length: a megabyte of brackets is a million levels for whoever walks them. Parse
// with these functions alone, never with the library's own.
#pragma once

#include <cstddef>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include <gantry/error.h>

namespace gantry {

/// What a document may have at most.
struct JsonLimits {
  size_t bytes = size_t{16} << 20;
  /// Arrays and objects inside each other; a real config.json has seven. Whoever copies, prints
  /// or compares a value does so level by level on the stack of a worker, which is small.
  int depth = 64;
  /// A value takes up to a hundred bytes of memory, whatever it takes in the text.
  size_t values = 50'000;
};

/// Of a config.json, and of what was made of one: a real one has some thousands of values.
inline constexpr JsonLimits kSpecJson = {.values = 500'000};

/// `text` is JSON within `limits`. Nothing is made of it. `what` is what errors call it: a path,
/// "exec spec". Errors: kInvalidArgument: too long, too deep, too many values, not JSON or not
/// UTF-8. Thread: any. Blocks: never.
Status CheckJson(std::string_view text, std::string_view what, const JsonLimits& limits = {});

/// The document. Errors: as `CheckJson`, with line and column. Thread: any. Blocks: never.
/// Owner: the caller; it refers to nothing of `text`. Includes <nlohmann/json.hpp>: the caller.
Result<nlohmann::json> ParseJson(std::string_view text, std::string_view what,
                                 const JsonLimits& limits = {});

/// The same for who takes what is wrong for absent: a discarded value, which is of no type.
nlohmann::json ReadJson(std::string_view text, const JsonLimits& limits = {});
/// The same, and members stay in their order.
nlohmann::ordered_json ReadOrderedJson(std::string_view text, const JsonLimits& limits = {});

}  // namespace gantry
