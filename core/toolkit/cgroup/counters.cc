// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <gantry/number.h>
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
  const auto number = ParseNumber(text);
  return number && *number >= 0 ? std::optional(static_cast<uint64_t>(*number)) : std::nullopt;
}

std::optional<uint64_t> ReadNumber(const std::string& path) {
  return NumberAlone(TextOfFile(path));
}

std::optional<uint64_t> ReadField(const std::string& path, const std::string& name) {
  const std::string text = TextOfFile(path);
  const size_t at = ("\n" + text).find("\n" + name + " ");
  if (at == std::string::npos) {
    return std::nullopt;
  }
  const std::string_view rest = std::string_view(text).substr(at + name.size() + 1);
  return NumberAlone(rest.substr(0, rest.find('\n')));
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

uint64_t OomKills(const CgroupDirs& dirs) {
  uint64_t kills = 0;
  for (const std::string& dir : dirs) {
    for (const char* file : {"/memory.events", "/memory.oom_control"}) {
      kills = std::max(kills, ReadField(dir + file, "oom_kill").value_or(0));
    }
  }
  return kills;
}

}  // namespace gantry::cgroup
