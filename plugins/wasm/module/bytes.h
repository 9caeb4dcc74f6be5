// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include <gantry/unique_fd.h>

namespace gantry::wasm {

/// A module or component, read once from where it was: it does not change any more.
struct ModuleBytes {
  /// A sealed file in memory, open for reading.
  UniqueFd file;
  uint64_t size = 0;
  /// SHA-256 of its bytes.
  std::array<uint8_t, 32> digest{};
  /// That it defines, where that has been looked at (`WalkSections`).
  uint32_t functions = 0;
};

}  // namespace gantry::wasm
