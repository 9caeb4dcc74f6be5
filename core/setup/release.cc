// SPDX-License-Identifier: Apache-2.0
#include "core/setup/release.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <gantry/format.h>

namespace gantry::setup {
namespace {

constexpr Release kOldest{1, 6, 0};
constexpr int kLatestMajor = 2;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

/// The number at `at`, which moves behind it and the dot that follows; -1: there is none.
int NextNumber(std::string_view text, size_t& at) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), number);
  if (error != std::errc()) {
    return -1;
  }
  at = static_cast<size_t>(end - text.data());
  if (at < text.size() && text[at] == '.') {
    ++at;
  }
  return number;
}

/// MAJOR.MINOR.PATCH at the begin of a word; what follows (`~ds1`, `-k3s1`) is a packager's.
bool ReadRelease(std::string_view word, Release& release) {
  size_t at = word.starts_with('v') ? 1 : 0;
  std::array<int, 3> numbers{};
  for (int& number : numbers) {
    if (at >= word.size() || !IsDigit(word[at])) {
      return false;
    }
    number = NextNumber(word, at);
    if (number < 0) {
      return false;
    }
  }
  release = {numbers[0], numbers[1], numbers[2]};
  return true;
}

}  // namespace

std::string Release::Text() const { return Format("{}.{}.{}", major, minor, patch); }

int Release::LatestConfig() const {
  if (major < 2) {
    return 2;
  }
  return minor < 3 ? 3 : 4;
}

Result<Release> ParseRelease(std::string_view text) {
  text = text.substr(0, text.find('\n'));
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    Release release;
    if (ReadRelease(text.substr(at, end - at), release)) {
      if (release < kOldest || release.major > kLatestMajor) {
        return Fail(Code::kUnimplemented,
                    "containerd {}: only 1.6 to 2.x are known here; add the runtimes by hand, see "
                    "docs/kubernetes.md",
                    release.Text());
      }
      return release;
    }
    at = end + 1;
  }
  return Fail(Code::kInvalidArgument, "no release of containerd in '{}'", text.substr(0, 200));
}

Result<Sandboxer> ParseSandboxer(std::string_view word) {
  if (word == "podsandbox") {
    return Sandboxer::kPodsandbox;
  }
  if (word == "shim") {
    return Sandboxer::kShim;
  }
  if (word == "controller") {
    return Sandboxer::kController;
  }
  return Fail(Code::kInvalidArgument, "sandboxer '{}': it is podsandbox, shim or controller", word);
}

Status CheckSandboxer(const Release& release, Sandboxer sandboxer) {
  const bool first = release.major < 2;
  if (sandboxer == Sandboxer::kShim && (first ? release.minor < 7 : release.minor < 3)) {
    return Fail(Code::kFailedPrecondition, "sandboxer 'shim': containerd {} {}; take {}",
                release.Text(), first ? "has none" : "dies of such a pod (mended in 2.3.0)",
                first ? "'podsandbox'" : "'controller' or 'podsandbox'");
  }
  if (sandboxer == Sandboxer::kController && first) {
    return Fail(Code::kFailedPrecondition,
                "sandboxer 'controller': containerd {} asks none, 2.0 and later do; take "
                "'podsandbox'",
                release.Text());
  }
  return {};
}

}  // namespace gantry::setup
