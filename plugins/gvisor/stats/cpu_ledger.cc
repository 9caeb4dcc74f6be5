// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/stats/cpu_ledger.h"

#include <algorithm>
#include <array>

#include <gantry/format.h>
#include <gantry/number.h>

namespace gantry::gvisor {
namespace {

/// As fine as the messages for cgroups v2 have it.
constexpr uint64_t kLeastNs = 1000;

/// A sentry may say anything; 146 years are enough.
constexpr uint64_t kMostNs = uint64_t{1} << 62;

uint64_t Since(uint64_t now, uint64_t before) { return now > before ? now - before : 0; }

}  // namespace

void CpuLedger::Add(const CpuSample& sample, bool is_alone) {
  const CpuTimes before = sentry_;
  sentry_ = {.own_ns = std::min(sample.sentry.own_ns, kMostNs),
             .all_ns = std::min(sample.sentry.all_ns, kMostNs)};
  const uint64_t own = Since(sentry_.own_ns, before.own_ns);
  // Both are read while processes run, one after the other.
  const uint64_t all = std::max(Since(sentry_.all_ns, before.all_ns), own);
  uint64_t charge = own;
  if (sample.host_ns) {
    const uint64_t host = Since(*sample.host_ns, host_ns_);
    host_ns_ = *sample.host_ns;
    const double share = all == 0 ? 0.0 : static_cast<double>(own) / static_cast<double>(all);
    charge = is_alone ? host : static_cast<uint64_t>(share * static_cast<double>(host));
  }
  charged_ns_ = std::min(charged_ns_ + charge, kMostNs);
}

uint64_t CpuLedger::total_ns() const { return std::max(charged_ns_, kLeastNs); }

std::string CpuLedger::ToText() const {
  return Format("{} {} {} {}", charged_ns_, host_ns_, sentry_.own_ns, sentry_.all_ns);
}

Result<CpuLedger> CpuLedger::FromText(std::string_view text) {
  CpuLedger ledger;
  const std::array numbers = {&ledger.charged_ns_, &ledger.host_ns_, &ledger.sentry_.own_ns,
                              &ledger.sentry_.all_ns};
  std::string_view rest = text;
  for (uint64_t* number : numbers) {
    const size_t space = std::min(rest.find(' '), rest.size());
    const auto value = ParseNumber(rest.substr(0, space));
    const bool is_last = number == numbers.back();
    if (!value || *value < 0 || is_last != (space == rest.size())) {
      return Fail(Code::kDataLoss, "read a container's CPU time: '{}'", text);
    }
    *number = static_cast<uint64_t>(*value);
    rest.remove_prefix(std::min(space + 1, rest.size()));
  }
  return ledger;
}

}  // namespace gantry::gvisor
