// SPDX-License-Identifier: Apache-2.0
#include "core/log/log.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>

#include <gantry/format.h>
#include <gantry/toolkit/sync/mutex.h>

#include "core/log/budget.h"
#include "core/log/printable.h"
#include "core/log/rotation.h"

namespace gantry::log {
namespace {

constexpr size_t kMaxLine = 4096;
/// What a message may take of a line, so that the fields behind it are seen.
constexpr size_t kMaxMessage = 3000;
constexpr size_t kMaxValue = 512;

std::atomic<Level> current_level = Level::kInfo;

/// Never held while a coroutine waits.
Mutex mutex;
Budget budget GANTRY_GUARDED_BY(mutex);
Rotation rotation GANTRY_GUARDED_BY(mutex);
std::function<void(std::string_view)> sink GANTRY_GUARDED_BY(mutex);

/// The sandbox or container that a line is about.
std::string_view SubjectOf(Fields fields) {
  const Field* const found =
      std::ranges::find(fields, std::string_view("id"), [](const Field& one) { return one.key; });
  return found == fields.end() ? std::string_view() : found->value;
}

bool IsPlain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-._/@^+:,%").contains(c);
}

/// As it stands between quotes.
void AppendEscaped(std::string& out, std::string_view text, size_t limit) {
  while (!text.empty() && out.size() < limit) {
    const size_t plain = std::min(text.find_first_of("\"\\"), text.size());
    AppendPrintable(out, text.substr(0, plain), limit);
    text.remove_prefix(plain);
    if (!text.empty() && out.size() < limit) {
      out += {'\\', text.front()};
      text.remove_prefix(1);
    }
  }
}

/// ` key=value`; what is beyond `max` bytes of the value is replaced by `...`.
void AppendField(std::string& out, std::string_view key, std::string_view value, size_t max) {
  out.append(out.empty() ? "" : " ").append(key).push_back('=');
  const bool cut = value.size() > max;
  value = value.substr(0, max);
  if (!cut && !value.empty() && std::ranges::all_of(value, IsPlain)) {
    out.append(value);
    return;
  }
  const size_t limit = out.size() + max;
  out.push_back('"');
  // Escapes make it longer: the bound holds for what is written.
  AppendEscaped(out, value, limit);
  out.append(cut ? "...\"" : "\"");
}

std::string MakeLine(Level level, Fields fields, std::string_view message, uint32_t suppressed) {
  const auto now = std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now());
  std::string line = Format("time={:%FT%TZ} level={}", now, LevelName(level));
  AppendField(line, "msg", message, kMaxMessage);
  for (const Field& field : fields) {
    if (!field.value.empty() && line.size() + field.key.size() + 64 < kMaxLine) {
      const size_t left = kMaxLine - 64 - line.size() - field.key.size();
      AppendField(line, field.key, field.value, std::min(kMaxValue, left));
    }
  }
  if (suppressed > 0) {
    line += Format(" suppressed={}", suppressed);
  }
  line.push_back('\n');
  return line;
}

}  // namespace

Result<Level> ParseLevel(std::string_view name) {
  if (name == "warn") {
    return Level::kWarning;
  }
  for (const Level level : {Level::kDebug, Level::kInfo, Level::kWarning, Level::kError}) {
    if (name == LevelName(level)) {
      return level;
    }
  }
  return Fail(Code::kInvalidArgument, "read log level '{}': not one of debug, info, warning, error",
              name.substr(0, 80));
}

std::string_view LevelName(Level level) {
  switch (level) {
    case Level::kDebug:
      return "debug";
    case Level::kInfo:
      return "info";
    case Level::kWarning:
      return "warning";
    case Level::kError:
      return "error";
  }
  return "error";
}

void SetLevel(Level level) { current_level.store(level, std::memory_order_relaxed); }

Level CurrentLevel() { return current_level.load(std::memory_order_relaxed); }

void Write(Level level, const std::source_location& where, Fields fields,
           std::string_view message) {
  const MutexLock lock(mutex);
  const Budget::Answer answer =
      budget.Admit(where.file_name(), where.line(), level == Level::kError, SubjectOf(fields),
                   Budget::Clock::now());
  if (!answer.admitted) {
    return;
  }
  const std::string line = MakeLine(level, fields, message, answer.suppressed);
  if (sink) {
    sink(line);
    return;
  }
  // stderr is unbuffered: this is one write. Nobody is left to tell of a failure.
  static_cast<void>(std::fwrite(line.data(), 1, line.size(), stderr));
  rotation.Wrote(line.size());
}

void KeepBounded(std::string path, int64_t max_bytes) {
  const MutexLock lock(mutex);
  rotation.Begin(std::move(path), max_bytes);
}

void SetSinkForTest(std::function<void(std::string_view line)> new_sink) {
  const MutexLock lock(mutex);
  sink = std::move(new_sink);
  budget.Clear();
}

}  // namespace gantry::log
