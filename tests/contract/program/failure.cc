// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/program/failure.h"

#include <sstream>
#include <string_view>
#include <vector>

namespace gantry::contract {
namespace {

constexpr std::string_view kWhichIs = "    Which is: ";
constexpr std::string_view kActual = "  Actual: ";
constexpr std::string_view kExpected = "Expected: ";
constexpr std::string_view kExpectedThat = "Expected: (";
constexpr std::string_view kTrace = "Google Test trace:";

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

/// As one of the matchers' says it: "false (NOT_FOUND 'x' instead of OK)".
void AddActual(std::string_view actual, std::vector<std::string>& out) {
  const size_t open = actual.find('(');
  if (actual.starts_with("false (") || actual.starts_with("true (")) {
    const std::string_view inner = actual.substr(open + 1, actual.rfind(')') - open - 1);
    const size_t instead = inner.rfind(" instead of ");
    out.push_back("got: " + std::string(inner.substr(0, instead)));
    if (instead != std::string_view::npos) {
      out.push_back("wanted: " + std::string(inner.substr(instead + 12)));
    }
  } else if (actual != "true" && actual != "false") {
    out.push_back("got: " + std::string(actual));
  }
}

/// An equality names both sides, each by its expression and, where that is none, its value.
std::vector<std::string> SidesOf(const std::vector<std::string>& lines, size_t& at) {
  std::vector<std::string> sides;
  for (; at < lines.size() && lines[at].starts_with("  "); ++at) {
    if (lines[at].starts_with(kWhichIs)) {
      sides.back() = lines[at].substr(kWhichIs.size());
    } else if (lines[at].starts_with("  ") && sides.size() < 2) {
      sides.push_back(lines[at].substr(2));
    } else {
      break;
    }
  }
  return sides;
}

/// "/path/of/the/suite.cc:12: killed before Start": only the words.
std::string WordsOfTrace(const std::string& line) {
  const size_t words = line.find(": ");
  return words == std::string::npos ? line : line.substr(words + 2);
}

/// What GoogleTest shows of two texts line by line; both have been told.
bool IsOfADiff(const std::string& line) {
  return line == "With diff:" || line.starts_with("@@") || line.starts_with('+') ||
         line.starts_with('-') || line.starts_with(' ');
}

}  // namespace

std::string ReadableFailure(const std::string& message) {
  const std::vector<std::string> lines = LinesOf(message);
  std::vector<std::string> out;
  bool trace = false;
  for (size_t at = 0; at < lines.size(); ++at) {
    const std::string& line = lines[at];
    if (line == kTrace) {
      trace = true;
    } else if (trace) {
      out.push_back("when: " + WordsOfTrace(line));
    } else if (line == "Expected equality of these values:") {
      const std::vector<std::string> sides = SidesOf(lines, ++at);
      --at;
      if (sides.size() == 2) {
        out.push_back("got: " + sides[0]);
        out.push_back("wanted: " + sides[1]);
      }
      if (at + 1 < lines.size() && lines[at + 1] == "With diff:") {
        while (at + 1 < lines.size() && IsOfADiff(lines[at + 1])) {
          ++at;
        }
      }
    } else if (line.starts_with("Value of: ") || line == "Expected: true" ||
               line == "Expected: false" || line == "Failed") {
      // The suite's source; the demand says what is wanted.
    } else if (line.starts_with(kActual)) {
      AddActual(std::string_view(line).substr(kActual.size()), out);
    } else if (line.starts_with(kExpectedThat)) {
      const size_t actual = line.find("actual: ");
      out.push_back("got: " + (actual == std::string::npos ? "" : line.substr(actual + 8)));
    } else if (line.starts_with(kExpected)) {
      out.push_back("wanted: " + line.substr(kExpected.size()));
    } else if (!line.empty()) {
      out.push_back(line);
    }
  }
  std::string text;
  for (const std::string& line : out) {
    text += (text.empty() ? "" : "\n") + line;
  }
  return text;
}

}  // namespace gantry::contract
