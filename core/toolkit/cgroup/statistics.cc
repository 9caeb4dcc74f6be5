// SPDX-License-Identifier: Apache-2.0
#include <gantry/toolkit/cgroup/counters.h>
#include <gantry/toolkit/cgroup/statistics.h>

namespace gantry::cgroup {
namespace {

std::unexpected<Error> NoMemoryController(const std::string& what, const std::string& dir) {
  return Fail(Code::kNotFound, "read {} of cgroup '{}': it has no memory controller", what, dir);
}

}  // namespace

uint64_t Counter(const CgroupCounters& counters, std::string_view name) {
  const auto found = counters.find(name);
  return found == counters.end() ? 0 : found->second;
}

Result<uint64_t> ReadMemoryUse(const Cgroup& cgroup) {
  const std::string dir = cgroup.DirOf("memory");
  const std::string file =
      dir + (cgroup.is_unified() ? "/memory.current" : "/memory.usage_in_bytes");
  const auto bytes = dir.empty() ? std::nullopt : ReadNumber(file);
  return bytes ? Result<uint64_t>(*bytes) : NoMemoryController("the memory in use", dir);
}

Result<uint64_t> ReadOomKills(const Cgroup& cgroup) {
  const std::string dir = cgroup.DirOf("memory");
  const auto kills = dir.empty() ? std::nullopt : OomKillsIn(dir);
  return kills ? Result<uint64_t>(*kills) : NoMemoryController("the OOM kills", dir);
}

}  // namespace gantry::cgroup
