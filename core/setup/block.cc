// SPDX-License-Identifier: Apache-2.0
#include "core/setup/block.h"

#include <algorithm>

#include <gantry/format.h>

namespace gantry::setup {
namespace {

constexpr std::string_view kBegin = "# BEGIN gantryctl node-setup";
constexpr std::string_view kEnd = "# END gantryctl node-setup";
constexpr std::string_view kMadeFile = ", made this file";
constexpr std::string_view kMadeFolder = ", made its folder";
constexpr std::string_view kEndedLine = ", ended the line before";

std::string Marked(std::string_view body, const Block& made) {
  return Format("{}{}{}{}: taken back by `gantryctl node-setup --undo`\n{}{}\n", kBegin,
                made.made_file ? kMadeFile : "", made.made_folder ? kMadeFolder : "",
                made.ended_line ? kEndedLine : "", body, kEnd);
}

std::unexpected<Error> Edited(std::string_view path, size_t line, std::string_view what) {
  return Fail(Code::kFailedPrecondition,
              "'{}', line {}: {}; it was edited: mend it, or remove what is gantry's and its marks "
              "by hand",
              path, line, what);
}

}  // namespace

Result<std::optional<Block>> FindBlock(std::string_view text, std::string_view path) {
  std::optional<Block> found;
  bool open = false;
  size_t line = 0;
  size_t body = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string_view here = text.substr(at, end - at);
    ++line;
    if (here.starts_with(kBegin)) {
      if (found) {
        return Edited(path, line, "a second block of gantryctl begins");
      }
      found = Block{.begin = at,
                    .end = 0,
                    .body = {},
                    .made_file = here.contains(kMadeFile),
                    .made_folder = here.contains(kMadeFolder),
                    .ended_line = here.contains(kEndedLine)};
      open = true;
      body = end;
    } else if (here.starts_with(kEnd)) {
      if (!open || !found) {
        return Edited(path, line, "a block of gantryctl ends that did not begin");
      }
      open = false;
      found->body = text.substr(body, at - body);
      found->end = end;
    }
    at = end;
  }
  if (open) {
    return Edited(path, line, "a block of gantryctl does not end");
  }
  return found;
}

std::string WithBlock(std::string_view text, const std::optional<Block>& block,
                      std::string_view body, const Block& made) {
  if (block) {
    return Format("{}{}{}", text.substr(0, block->begin), Marked(body, *block),
                  text.substr(block->end));
  }
  Block here = made;
  here.ended_line = !text.empty() && !text.ends_with('\n');
  return Format("{}{}{}", text, here.ended_line ? "\n" : "", Marked(body, here));
}

std::string WithoutBlock(std::string_view text, const Block& block) {
  std::string_view before = text.substr(0, block.begin);
  const std::string_view behind = text.substr(block.end);
  // What somebody has written behind it since needs the line's end.
  if (block.ended_line && before.ends_with('\n') && behind.empty()) {
    before.remove_suffix(1);
  }
  return Format("{}{}", before, behind);
}

}  // namespace gantry::setup
