// SPDX-License-Identifier: Apache-2.0
#include "core/log/log.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>

#include <gantry/format.h>

namespace gantry::log {
namespace {

constexpr size_t kMaxLine = 4096;
/// What a message may take of a line, so that the fields behind it are seen.
constexpr size_t kMaxMessage = 3000;
constexpr size_t kMaxValue = 512;
constexpr auto kWindow = std::chrono::seconds(5);
constexpr uint32_t kBurst = 20;
constexpr uint32_t kErrorBurst = 200;

using Clock = std::chrono::steady_clock;

std::atomic<Level> current_level = Level::kInfo;

/// What one call site has logged lately. Two sites that share a slot take it
/// from each other: then too much is logged, never too little.
struct Slot {
  const char* file = nullptr;
  uint32_t line = 0;
  uint32_t count = 0;
  uint32_t suppressed = 0;
  Clock::time_point begin;
};

/// Guards `slots` and `sink`. Never held while a coroutine waits.
std::mutex mutex;
std::array<Slot, 256> slots;
std::function<void(std::string_view)> sink;

/// Whether the site may log; how many lines were held back before this one.
bool Admit(Level level, const std::source_location& where, uint32_t& suppressed) {
  const auto hash = std::hash<const void*>()(where.file_name()) * 31 + where.line();
  Slot& slot = slots[hash % slots.size()];
  const Clock::time_point now = Clock::now();
  if (slot.file != where.file_name() || slot.line != where.line()) {
    slot = Slot{where.file_name(), where.line(), 0, 0, now};
  } else if (now - slot.begin > kWindow) {
    slot.begin = now;
    slot.count = 0;
  }
  if (slot.count >= (level == Level::kError ? kErrorBurst : kBurst)) {
    ++slot.suppressed;
    return false;
  }
  ++slot.count;
  suppressed = std::exchange(slot.suppressed, 0);
  return true;
}

bool IsPlain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-._/@^+:,%").contains(c);
}

void AppendEscaped(std::string& out, char c) {
  const auto byte = static_cast<uint8_t>(c);
  if (c == '"' || c == '\\') {
    out += {'\\', c};
  } else if (c == '\n') {
    out += "\\n";
  } else if (c == '\t') {
    out += "\\t";
  } else if (byte < 0x20 || byte == 0x7f) {
    out += Format("\\x{:02x}", byte);
  } else {
    out += c;
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
  for (const char c : value) {
    // Escapes make it longer: the bound holds for what is written.
    if (out.size() >= limit) {
      break;
    }
    AppendEscaped(out, c);
  }
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
  const std::lock_guard lock(mutex);
  uint32_t suppressed = 0;
  if (!Admit(level, where, suppressed)) {
    return;
  }
  const std::string line = MakeLine(level, fields, message, suppressed);
  if (sink) {
    sink(line);
    return;
  }
  // stderr is unbuffered: this is one write. Nobody is left to tell of a failure.
  static_cast<void>(std::fwrite(line.data(), 1, line.size(), stderr));
}

void SetSinkForTest(std::function<void(std::string_view line)> new_sink) {
  const std::lock_guard lock(mutex);
  sink = std::move(new_sink);
  slots.fill(Slot{});
}

}  // namespace gantry::log
