// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>

#include <gantry/toolkit/cgroup/counters.h>
#include <gantry/toolkit/files/files.h>

namespace gantry::cgroup {
namespace {

constexpr size_t kMaxCgroupFile = 4096;
/// Every cgroup has it, on v1 and v2.
constexpr const char* kProcs = "/cgroup.procs";

std::string TextOfFile(const std::string& path) {
  return ReadFile(path, kMaxCgroupFile).value_or("");
}

}  // namespace

std::optional<uint64_t> NumberAlone(std::string_view text) {
  while (text.ends_with('\n')) {
    text.remove_suffix(1);
  }
  uint64_t number = 0;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [parsed, error] = std::from_chars(begin, end, number);
  return error == std::errc() && parsed == end ? std::optional(number) : std::nullopt;
}

std::optional<uint64_t> ReadNumber(const std::string& path) {
  return NumberAlone(TextOfFile(path));
}

std::optional<uint64_t> FieldIn(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == ' ') {
      return NumberAlone(line.substr(name.size() + 1));
    }
  }
  return std::nullopt;
}

std::optional<uint64_t> ReadField(const std::string& path, std::string_view name) {
  return FieldIn(TextOfFile(path), name);
}

std::vector<std::string> UpToRoot(std::string dir) {
  std::vector<std::string> all;
  for (; !dir.empty() && Exists(dir + kProcs); dir.resize(dir.rfind('/'))) {
    all.push_back(dir);
  }
  return all;
}

std::optional<uint64_t> CpuTimeNs(const CgroupDirs& dirs) {
  constexpr uint64_t kNsPerUs = 1000;
  for (const std::string& dir : dirs) {
    if (const auto ns = ReadNumber(dir + "/cpuacct.usage")) {
      return ns;
    }
    if (const auto us = ReadField(dir + "/cpu.stat", "usage_usec")) {
      return *us * kNsPerUs;
    }
  }
  return std::nullopt;
}

uint64_t MemoryLimitBytes(const CgroupDirs& dirs) {
  uint64_t limit = UINT64_MAX;
  for (const std::string& first : dirs) {
    for (const std::string& dir : UpToRoot(first)) {
      for (const char* file : {"/memory.max", "/memory.limit_in_bytes"}) {
        limit = std::min(limit, ReadNumber(dir + file).value_or(UINT64_MAX));
      }
    }
  }
  return limit;
}

std::optional<uint64_t> OomKillsIn(const std::string& dir) {
  for (const char* file : {"/memory.events", "/memory.oom_control"}) {
    if (const auto text = ReadFile(dir + file, kMaxCgroupFile)) {
      // v1 does not count them before Linux 4.13.
      return FieldIn(*text, "oom_kill").value_or(0);
    }
  }
  return std::nullopt;
}

uint64_t OomKills(const CgroupDirs& dirs) {
  uint64_t kills = 0;
  for (const std::string& dir : dirs) {
    kills = std::max(kills, OomKillsIn(dir).value_or(0));
  }
  return kills;
}

}  // namespace gantry::cgroup
