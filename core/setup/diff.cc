// SPDX-License-Identifier: Apache-2.0
#include "core/setup/diff.h"

#include <algorithm>
#include <vector>

#include <gantry/format.h>

namespace gantry::setup {
namespace {

constexpr size_t kContext = 3;

/// Each with its end; the last one may have none.
std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t size = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return lines;
}

std::string Line(char sign, std::string_view line) {
  return Format("{}{}{}", sign, line,
                line.ends_with('\n') ? "" : "\n\\ No newline at end of file\n");
}

/// `BEGIN,COUNT` of a hunk's head: an empty range is behind the line that it names.
std::string Range(size_t begin, size_t count) {
  return Format("{},{}", count == 0 ? begin : begin + 1, count);
}

}  // namespace

std::string UnifiedDiff(std::string_view path, const std::optional<std::string>& before,
                        const std::optional<std::string>& after) {
  if (before == after) {
    return "";
  }
  const auto was = LinesOf(before ? std::string_view(*before) : std::string_view());
  const auto is = LinesOf(after ? std::string_view(*after) : std::string_view());
  const size_t shorter = std::min(was.size(), is.size());
  size_t same = 0;
  while (same < shorter && was[same] == is[same]) {
    ++same;
  }
  size_t tail = 0;
  while (tail < shorter - same && was[was.size() - 1 - tail] == is[is.size() - 1 - tail]) {
    ++tail;
  }
  const size_t begin = same - std::min(same, kContext);
  const size_t behind = std::min(tail, kContext);
  const size_t was_end = was.size() - tail + behind;
  const size_t is_end = is.size() - tail + behind;
  std::string text = Format("--- {}\n+++ {}\n@@ -{} +{} @@\n", before ? path : "/dev/null",
                            after ? path : "/dev/null", Range(begin, was_end - begin),
                            Range(begin, is_end - begin));
  for (size_t i = begin; i < same; ++i) {
    text += Line(' ', was[i]);
  }
  for (size_t i = same; i < was.size() - tail; ++i) {
    text += Line('-', was[i]);
  }
  for (size_t i = same; i < is.size() - tail; ++i) {
    text += Line('+', is[i]);
  }
  for (size_t i = was.size() - tail; i < was_end; ++i) {
    text += Line(' ', was[i]);
  }
  return text;
}

}  // namespace gantry::setup
