// SPDX-License-Identifier: Apache-2.0
#include "core/metrics/figures.h"

#include <algorithm>
#include <csignal>
#include <utility>

namespace gantry::metrics {
namespace {

constexpr uint32_t kSignalBase = 128;

}  // namespace

void Histogram::Add(std::chrono::nanoseconds took) {
  const double seconds = std::chrono::duration<double>(took).count();
  const auto* const bound = std::ranges::lower_bound(kBounds, seconds);
  ++buckets_.at(static_cast<size_t>(bound - kBounds.begin()));
  sum_ += took;
}

Ending EndingOf(uint32_t status, bool out_of_memory) {
  if (status == 0) {
    return Ending::kZero;
  }
  if (status == kSignalBase + SIGKILL && out_of_memory) {
    return Ending::kOutOfMemory;
  }
  return status > kSignalBase && status <= kSignalBase + SIGRTMAX ? Ending::kSignal
                                                                  : Ending::kNonZero;
}

void Figures::Call(CallKey key, std::chrono::nanoseconds took, bool failed) {
  CallFigures& figures = calls[std::move(key)];
  figures.took.Add(took);
  figures.failures += failed ? 1 : 0;
}

void Figures::Exit(const std::string& backend, bool exec, Ending ending) {
  ++exits[{backend, exec, ending}];
}

}  // namespace gantry::metrics
