// SPDX-License-Identifier: Apache-2.0
//
// The engine's log: one line per event on stderr, as key=value text:
//
//     time=2025-01-31T08:15:30.123456Z level=info msg="container created" ns=k8s.io id=a1
//
// A line is at most 4096 bytes and written at once, so lines of several threads
// and processes do not mix. Values are quoted where needed: no input can forge
// a line. One call site logs at most 20 lines in 5 s about one `id` below level error (200 at
// it), see budget.h; what was held back is said by the next such line (`suppressed=`).
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <source_location>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <gantry/context.h>
#include <gantry/error.h>
#include <gantry/format.h>

namespace gantry::log {

using Level = LogLevel;

/// "debug", "info", "warning" ("warn"), "error". Errors: kInvalidArgument.
Result<Level> ParseLevel(std::string_view name);
std::string_view LevelName(Level level);

/// Lines below are not written. At first kInfo. Thread: any.
void SetLevel(Level level);
Level CurrentLevel();

/// A named value behind the message. Left out when the value is empty.
struct Field {
  std::string_view key;
  std::string_view value;
};

using Fields = std::initializer_list<Field>;

/// A format string that knows where it was written.
template <class... Args>
struct Site {
  template <class Text>
  consteval Site(const Text& text,  // NOLINT(google-explicit-constructor): as std::format_string
                 std::source_location at = std::source_location::current())
      : format(text), where(at) {}

  std::format_string<Args...> format;
  std::source_location where;
};

/// Writes a line without asking for the level, the call site's limit applies.
void Write(Level level, const std::source_location& where, Fields fields, std::string_view message);

template <class... Args>
void Log(Level level, Fields fields, const Site<std::type_identity_t<Args>...>& site,
         Args&&... args) {
  if (level >= CurrentLevel()) {
    Write(level, site.where, fields, Format(site.format, std::forward<Args>(args)...));
  }
}

/// Receives every line, its newline included, in stderr's stead; an empty
/// function brings stderr back. Also forgets what call sites have logged.
void SetSinkForTest(std::function<void(std::string_view line)> sink);

}  // namespace gantry::log

namespace gantry {

// `LogInfo("loaded {} backends", n)`, `LogInfo({{"ns", ns}, {"id", id}}, "created")`.
// Thread: any. Blocks: while stderr does.
#define GANTRY_DEFINE_LOG(name, level)                                                \
  template <class... Args>                                                            \
  void name(const log::Site<std::type_identity_t<Args>...>& site, Args&&... args) {   \
    log::Log(level, log::Fields{}, site, std::forward<Args>(args)...);                \
  }                                                                                   \
  template <class... Args>                                                            \
  void name(log::Fields fields, const log::Site<std::type_identity_t<Args>...>& site, \
            Args&&... args) {                                                         \
    log::Log(level, fields, site, std::forward<Args>(args)...);                       \
  }
GANTRY_DEFINE_LOG(LogDebug, log::Level::kDebug)
GANTRY_DEFINE_LOG(LogInfo, log::Level::kInfo)
GANTRY_DEFINE_LOG(LogWarning, log::Level::kWarning)
GANTRY_DEFINE_LOG(LogError, log::Level::kError)
#undef GANTRY_DEFINE_LOG

}  // namespace gantry
