// SPDX-License-Identifier: Apache-2.0
//
// What this program writes into somebody else's file: lines between two marks, behind what is
// there. The first mark says what was done to the file for it, so that taking the block back leaves
// the file as it was, byte for byte. Thread: any. Blocks: never.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <gantry/error.h>

namespace gantry::setup {

struct Block {
  /// In the text, with the marks and the end of the last line.
  size_t begin = 0;
  size_t end = 0;
  /// Between the marks.
  std::string body = {};
  /// There was no file, and no folder for it.
  bool made_file = false;
  bool made_folder = false;
  /// The last line before it had no end.
  bool ended_line = false;
};

/// Nothing: there is none. Errors: kFailedPrecondition: a mark without its other one, or several
/// blocks: somebody edited them. `path` is for the message.
Result<std::optional<Block>> FindBlock(std::string_view text, std::string_view path);

/// The text with `body` between marks: in the place of `block`, or else at its end. `made`: what
/// was made for a new one, of a block that is there what that says.
std::string WithBlock(std::string_view text, const std::optional<Block>& block,
                      std::string_view body, const Block& made);

/// The text as it was without.
std::string WithoutBlock(std::string_view text, const Block& block);

}  // namespace gantry::setup
