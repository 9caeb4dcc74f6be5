// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/quantity.h"

#include <algorithm>
#include <array>
#include <limits>

#include <gantry/number.h>

namespace gantry::wasm {
namespace {

struct Unit {
  std::string_view name;
  uint64_t bytes;
};

constexpr std::array kUnits = {
    Unit{"", 1},
    Unit{"Ki", 1ULL << 10},
    Unit{"Mi", 1ULL << 20},
    Unit{"Gi", 1ULL << 30},
    Unit{"Ti", 1ULL << 40},
    Unit{"k", 1'000},
    Unit{"M", 1'000'000},
    Unit{"G", 1'000'000'000},
    Unit{"T", 1'000'000'000'000},
};

}  // namespace

Result<uint64_t> ParseQuantity(std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = ParseNumber(text.substr(0, digits));
  const auto unit = std::ranges::find(kUnits, text.substr(digits), &Unit::name);
  if (!number || *number <= 0 || unit == kUnits.end() ||
      static_cast<uint64_t>(*number) >
          static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) / unit->bytes) {
    return Fail(Code::kInvalidArgument, "'{}' is no number of bytes above 0, as 67108864 or 64Mi",
                text.substr(0, 80));
  }
  return static_cast<uint64_t>(*number) * unit->bytes;
}

}  // namespace gantry::wasm
