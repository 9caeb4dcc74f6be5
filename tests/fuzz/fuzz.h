// SPDX-License-Identifier: Apache-2.0
//
// What the fuzz targets share. Each target defines `FuzzOne`, which gets one
// input, and may claim what must hold for it with `Require`; a claim that does
// not hold, a sanitizer's report or a crash is a finding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace gantry::fuzz {

void FuzzOne(std::string_view input);

/// Ends the process, and so reports the input, where `holds` does not.
inline void Require(bool holds, const char* claim) {
  if (!holds) {
    std::fprintf(stderr, "does not hold: %s\n", claim);
    std::abort();
  }
}

/// The first byte of `input`, taken off it; 0 where it is empty. Chooses a variant.
inline uint8_t TakeByte(std::string_view& input) {
  if (input.empty()) {
    return 0;
  }
  const auto byte = static_cast<uint8_t>(input.front());
  input.remove_prefix(1);
  return byte;
}

}  // namespace gantry::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Null data comes with size 0.
  gantry::fuzz::FuzzOne(size == 0 ? std::string_view()
                                  : std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
