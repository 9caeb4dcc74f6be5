// SPDX-License-Identifier: Apache-2.0
#include "core/ctl/since.h"

#include <charconv>
#include <chrono>
#include <optional>
#include <sstream>
#include <system_error>

namespace gantry::ctl {
namespace {

constexpr int64_t kNanos = 1'000'000'000;
/// Longer ago nothing has happened, and no product overflows.
constexpr int64_t kMostSeconds = int64_t{100} * 366 * 86'400;

std::optional<int64_t> SecondsOf(char unit) {
  switch (unit) {
    case 's':
      return 1;
    case 'm':
      return 60;
    case 'h':
      return 3600;
    case 'd':
      return 86'400;
    default:
      return std::nullopt;
  }
}

std::optional<int64_t> Ago(const std::string& text) {
  const auto unit = text.empty() ? std::nullopt : SecondsOf(text.back());
  if (!unit) {
    return std::nullopt;
  }
  int64_t number = 0;
  const char* const last = text.data() + text.size() - 1;
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (error != std::errc() || end != last || number < 0 || number > kMostSeconds / *unit) {
    return std::nullopt;
  }
  return number * *unit * kNanos;
}

}  // namespace

Result<int64_t> ParseSince(const std::string& text, int64_t now_ns) {
  if (const auto ago = Ago(text)) {
    return now_ns - *ago;
  }
  std::chrono::sys_time<std::chrono::nanoseconds> time;
  std::istringstream in(text);
  in >> std::chrono::parse("%FT%TZ", time);
  if (in.fail() || in.peek() != std::istringstream::traits_type::eof()) {
    return Fail(Code::kInvalidArgument,
                "--since '{}': it is 30s, 10m, 2h, 7d, or a time as 2026-01-31T08:15:30Z", text);
  }
  return time.time_since_epoch().count();
}

}  // namespace gantry::ctl
