// SPDX-License-Identifier: Apache-2.0
#include <gantry/fingerprint.h>

namespace gantry {

uint64_t Fingerprint(std::string_view text, uint64_t seed) {
  uint64_t hash = 0xcbf29ce484222325 ^ seed;
  for (const char c : text) {
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  }
  return hash;
}

}  // namespace gantry
