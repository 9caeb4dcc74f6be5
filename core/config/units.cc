// SPDX-License-Identifier: Apache-2.0
#include "core/config/units.h"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace gantry::config {
namespace {

struct Unit {
  std::string_view name;
  uint64_t factor;
};

constexpr Unit kByteUnits[] = {
    {"", 1}, {"B", 1}, {"KiB", 1ULL << 10}, {"MiB", 1ULL << 20}, {"GiB", 1ULL << 30}};
constexpr Unit kTimeUnits[] = {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}};
constexpr Unit kNoUnits[] = {{"", 1}};

// A number followed by one of the units, times it; nothing where it is not that.
template <size_t N>
std::optional<uint64_t> Scaled(std::string_view text, const Unit (&units)[N]) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  for (const Unit& unit : units) {
    uint64_t product = 0;
    if (unit.name == text && !__builtin_mul_overflow(number, unit.factor, &product)) {
      return product;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<uint64_t> ParsePlain(std::string_view text) { return Scaled(text, kNoUnits); }

std::optional<uint64_t> ParseBytes(std::string_view text) { return Scaled(text, kByteUnits); }

std::optional<uint64_t> ParseMillis(std::string_view text) { return Scaled(text, kTimeUnits); }

}  // namespace gantry::config
