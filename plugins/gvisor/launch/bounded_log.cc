// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/launch/bounded_log.h"

#include <nlohmann/json.hpp>

#include <gantry/format.h>
#include <gantry/json.h>

namespace gantry::gvisor {
namespace {

constexpr size_t kMaxWords = 4096;

/// A line is JSON with the text as `msg`, or, of a panic, the text.
std::string WordsOf(const std::string& line) {
  const nlohmann::json entry = ReadJson(line);
  if (entry.is_object() && entry.contains("msg") && entry["msg"].is_string()) {
    return entry["msg"].get<std::string>();
  }
  return line;
}

}  // namespace

std::string LastWords(const UniqueFd& log) {
  std::string text = LastBytes(log, kMaxWords);
  while (text.ends_with('\n')) {
    text.pop_back();
  }
  const size_t newline = text.rfind('\n');
  return WordsOf(newline == std::string::npos ? text : text.substr(newline + 1));
}

std::string OwnPath(int number) { return Format("/proc/self/fd/{}", number); }

UniqueFd KeptSentryLog(SandboxContext& context) {
  return context.Take(kSentryLogName).value_or(UniqueFd());
}

}  // namespace gantry::gvisor
