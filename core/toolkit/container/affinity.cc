// SPDX-License-Identifier: Apache-2.0
#include "core/toolkit/container/affinity.h"

#include <sched.h>

#include <cerrno>
#include <climits>
#include <optional>
#include <ranges>

#include <gantry/number.h>

namespace gantry::container {
namespace {

// Source: Linux, arch/x86/Kconfig, NR_CPUS_RANGE_END.
constexpr size_t kMaxCpus = 8192;
constexpr size_t kWordBits = sizeof(unsigned long) * CHAR_BIT;

std::optional<size_t> CpuOf(std::string_view text) {
  const auto number = ParseNumber(text);
  return number && *number >= 0 && static_cast<uint64_t>(*number) < kMaxCpus
             ? std::optional(static_cast<size_t>(*number))
             : std::nullopt;
}

/// `3` or `0-3`.
bool AddRange(std::string_view range, CpuMask& mask) {
  const size_t dash = range.find('-');
  const auto first = CpuOf(range.substr(0, dash));
  const auto last = dash == range.npos ? first : CpuOf(range.substr(dash + 1));
  if (!first || !last || *first > *last) {
    return false;
  }
  for (size_t cpu = *first; cpu <= *last; ++cpu) {
    mask[cpu / kWordBits] |= 1UL << (cpu % kWordBits);
  }
  return true;
}

}  // namespace

Result<CpuMask> ParseCpuList(std::string_view list, std::string_view name) {
  if (list.empty()) {
    return CpuMask();
  }
  CpuMask mask(kMaxCpus / kWordBits);
  for (const auto part : std::views::split(list, ',')) {
    if (!AddRange(std::string_view(part), mask)) {
      return Fail(Code::kInvalidArgument, "{} '{}': not a list of CPUs, as 0-3,7 is", name, list);
    }
  }
  return mask;
}

CpuMask AllCpus() { return CpuMask(kMaxCpus / kWordBits, ~0UL); }

Status SetAffinity(const CpuMask& mask, std::string_view name) {
  if (mask.empty() || ::sched_setaffinity(0, mask.size() * sizeof(unsigned long),
                                          reinterpret_cast<const cpu_set_t*>(mask.data())) == 0) {
    return {};
  }
  return errno == EINVAL
             ? Fail(Code::kInvalidArgument, "set {}: none of these CPUs is there for it", name)
             : FailErrno(errno, "set {}", name);
}

}  // namespace gantry::container
