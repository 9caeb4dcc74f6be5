// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/harness/fault_list.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <numeric>

#include "tests/fault/harness/seed.h"

namespace gantry::fault {

namespace {

/// Of a point that is passed more often, as where a container's bytes go by beside the operation,
/// so many times are tried, spread over all of them.
constexpr uint32_t kMostTimes = 32;

uint32_t DistanceOf(const PassedPoint& point) {
  return std::max<uint32_t>(1, (point.times + kMostTimes - 1) / kMostTimes);
}

}  // namespace

void AddFailures(const PassedPoint& point, FaultList& list) {
  for (uint32_t nth = 1; (point.kinds & kEffect) != 0 && nth <= point.times;
       nth += DistanceOf(point)) {
    list.push_back({point.name, nth, Trouble::kKill});
  }
  if ((point.kinds & kSpace) != 0) {
    list.push_back({point.name, 1, Trouble::kNoSpace});
  }
  if ((point.kinds & kDescriptor) != 0) {
    list.push_back({point.name, 1, Trouble::kNoDescriptors});
  }
}

void AddUpgrades(const PassedPoint& point, FaultList& list) {
  constexpr Trouble kGivenUp[] = {Trouble::kCrashingUpgrade, Trouble::kRefusedUpgrade,
                                  Trouble::kSilentUpgrade};
  for (uint32_t nth = 1; (point.kinds & kEffect) != 0 && nth <= point.times;
       nth += DistanceOf(point)) {
    const Trouble given_up = kGivenUp[list.size() / 3 % std::size(kGivenUp)];
    for (const Trouble trouble : {Trouble::kUpgrade, Trouble::kKeeperUpgrade, given_up}) {
      list.push_back({point.name, nth, trouble});
    }
  }
}

void Choose(std::vector<FaultList>& runs) {
  const char* const only = std::getenv("GANTRY_FAULT_ONLY");
  const char* const every = std::getenv("GANTRY_FAULT_EVERY");
  const unsigned step = every != nullptr ? static_cast<unsigned>(std::max(1, std::atoi(every))) : 1;
  std::array<unsigned, kTroubles> numbers;
  // Of each kind another one: a point has several.
  std::iota(numbers.begin(), numbers.end(), step > 1 ? Seed() : 0);
  for (FaultList& list : runs) {
    std::erase_if(list, [&](const Fault& fault) {
      return only != nullptr ? Describe(fault) != only
                             : numbers[static_cast<size_t>(fault.trouble)]++ % step != 0;
    });
    std::ranges::reverse(list);
  }
}

}  // namespace gantry::fault
