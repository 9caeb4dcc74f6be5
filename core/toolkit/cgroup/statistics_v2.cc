// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <ranges>
#include <string>

#include <gantry/format.h>
#include <gantry/toolkit/cgroup/statistics.h>
#include <gantry/toolkit/files/files.h>

#include "core/toolkit/cgroup/parse.h"

namespace gantry::cgroup {
namespace {

// As `%lu.%02lu`. Not std::from_chars, which brings numbers of 128 bits into each small program.
double Decimal(std::string_view text) { return std::strtod(std::string(text).c_str(), nullptr); }

// "some avg10=0.00 avg60=0.00 avg300=0.00 total=0"
CgroupV2Stats::PressureLine ParsePressureLine(const std::vector<std::string_view>& words) {
  CgroupV2Stats::PressureLine line;
  for (const std::string_view word : words) {
    const size_t equals = word.find('=');
    if (equals == word.npos) {
      continue;
    }
    const std::string_view key = word.substr(0, equals);
    const std::string_view value = word.substr(equals + 1);
    if (key == "avg10") {
      line.avg10 = Decimal(value);
    } else if (key == "avg60") {
      line.avg60 = Decimal(value);
    } else if (key == "avg300") {
      line.avg300 = Decimal(value);
    } else if (key == "total") {
      line.total_us = ParseCgroupNumber(value);
    }
  }
  return line;
}

// Absent where the kernel has pressure information switched off.
std::optional<CgroupV2Stats::Pressure> ReadPressure(const std::string& file) {
  const auto text = ReadCgroupText(file);
  if (!text) {
    return std::nullopt;
  }
  CgroupV2Stats::Pressure out;
  for (const auto part : std::views::split(*text, '\n')) {
    const auto words = CgroupWords(std::string_view(part));
    if (!words.empty() && words[0] == "some") {
      out.some = ParsePressureLine(words);
    } else if (!words.empty() && words[0] == "full") {
      out.full = ParsePressureLine(words);
    }
  }
  return out;
}

std::optional<CgroupV2Stats::Memory> ReadMemoryV2(const std::string& dir) {
  const auto stat = ReadCgroupText(dir + "/memory.stat");
  if (!stat) {
    return std::nullopt;
  }
  CgroupV2Stats::Memory out;
  out.stat = ParseCgroupCounters(*stat);
  out.usage = ReadCgroupNumber(dir + "/memory.current");
  out.limit = ReadCgroupNumber(dir + "/memory.max");
  out.peak = ReadCgroupNumber(dir + "/memory.peak");
  out.swap_usage = ReadCgroupNumber(dir + "/memory.swap.current");
  out.swap_limit = ReadCgroupNumber(dir + "/memory.swap.max");
  out.swap_peak = ReadCgroupNumber(dir + "/memory.swap.peak");
  out.pressure = ReadPressure(dir + "/memory.pressure");
  return out;
}

// "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6"
std::vector<CgroupV2Stats::IoEntry> ParseIo(std::string_view text) {
  std::vector<CgroupV2Stats::IoEntry> out;
  for (const auto part : std::views::split(text, '\n')) {
    const auto words = CgroupWords(std::string_view(part));
    CgroupV2Stats::IoEntry entry;
    if (words.size() < 2 || !ParseDeviceNumbers(words[0], entry.major, entry.minor)) {
      continue;
    }
    for (const std::string_view word : words) {
      const size_t equals = word.find('=');
      const std::string_view key = word.substr(0, equals);
      const uint64_t value = equals == word.npos ? 0 : ParseCgroupNumber(word.substr(equals + 1));
      if (key == "rbytes") {
        entry.read_bytes = value;
      } else if (key == "wbytes") {
        entry.write_bytes = value;
      } else if (key == "rios") {
        entry.read_ios = value;
      } else if (key == "wios") {
        entry.write_ios = value;
      }
    }
    out.push_back(entry);
  }
  return out;
}

std::vector<CgroupHugetlb> ReadHugetlbV2(const std::string& dir) {
  std::vector<CgroupHugetlb> out;
  for (const std::string& size : HugetlbSizes(dir, ".current")) {
    const std::string prefix = Format("{}/hugetlb.{}", dir, size);
    const auto events = ParseCgroupCounters(ReadCgroupText(prefix + ".events").value_or(""));
    out.push_back({.page_size = size,
                   .usage_bytes = ReadCgroupNumber(prefix + ".current"),
                   .max_bytes = ReadCgroupNumber(prefix + ".max"),
                   .fail_count = Counter(events, "max")});
  }
  return out;
}

}  // namespace

Result<CgroupV2Stats> ReadCgroupV2Stats(const Cgroup& cgroup) {
  const std::string dir = cgroup.is_unified() ? cgroup.unified().dir() : std::string();
  if (dir.empty()) {
    return Fail(Code::kFailedPrecondition, "read v2 statistics: the cgroup is of v1");
  }
  if (!Exists(dir)) {
    return Fail(Code::kNotFound, "read the statistics of cgroup '{}': it is gone", dir);
  }
  const CgroupReadWatch watch;
  CgroupV2Stats out;
  if (const auto current = ReadCgroupText(dir + "/pids.current")) {
    out.pids = CgroupPids{.current = ParseCgroupNumber(*current),
                          .limit = ReadCgroupNumber(dir + "/pids.max")};
  }
  if (const auto stat = ReadCgroupText(dir + "/cpu.stat")) {
    out.cpu = CgroupV2Stats::Cpu{.stat = ParseCgroupCounters(*stat),
                                 .pressure = ReadPressure(dir + "/cpu.pressure")};
  }
  out.memory = ReadMemoryV2(dir);
  if (const auto events = ReadCgroupText(dir + "/memory.events")) {
    out.memory_events = ParseCgroupCounters(*events);
  }
  if (const auto io = ReadCgroupText(dir + "/io.stat")) {
    out.io =
        CgroupV2Stats::Io{.entries = ParseIo(*io), .pressure = ReadPressure(dir + "/io.pressure")};
  }
  out.hugetlb = ReadHugetlbV2(dir);
  out.rdma_current = ParseCgroupRdma(ReadCgroupText(dir + "/rdma.current").value_or(""));
  out.rdma_limit = ParseCgroupRdma(ReadCgroupText(dir + "/rdma.max").value_or(""));
  GANTRY_CHECK_OK(watch.status());
  return out;
}

}  // namespace gantry::cgroup
