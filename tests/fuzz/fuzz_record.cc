// SPDX-License-Identifier: Apache-2.0
//
// gantry.record of a bundle. A checksum guards it, which the fuzzer would never
// get past: with an odd first byte the rest gets one that fits.
#include <array>
#include <string>

#include "core/link/record_peek.h"
#include "core/store/checksum.h"
#include "core/store/record.h"
#include "tests/fuzz/fuzz.h"

namespace gantry::fuzz {

void FuzzOne(std::string_view input) {
  const bool sealed = TakeByte(input) % 2 == 1;
  const std::string bytes = sealed ? store::Seal(std::string(input)) : std::string(input);
  IgnoreError(link::PeekRecord(bytes), "it only must not crash");
  const Result<store::Record> record = store::Decode(bytes);
  if (!record) {
    return;
  }
  const std::string once = store::Encode(*record);
  const Result<store::Record> again = store::Decode(once);
  Require(again.has_value() && *again == *record, "an encoded record is read as the same");
  Require(link::PeekRecord(once).has_value(), "the shim can read it");
}

}  // namespace gantry::fuzz
