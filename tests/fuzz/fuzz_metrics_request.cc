// SPDX-License-Identifier: Apache-2.0
//
// What a scraper sends: one request, or several, behind each other.
#include "core/metrics/request.h"
#include "tests/fuzz/fuzz.h"

namespace gantry::fuzz {

void FuzzOne(std::string_view input) {
  for (;;) {
    const metrics::Request request = metrics::ReadRequest(input);
    if (request.status != 200) {
      Require(!request.keep_alive, "an error is the last answer");
      Require((request.status == 0) == request.complaint.empty(), "an error says what it is");
      Require(request.status != 0 || input.size() < metrics::kMaxHeadBytes, "no head has no end");
      break;
    }
    Require(request.bytes > 0 && request.bytes <= metrics::kMaxHeadBytes, "a head has an end");
    input.remove_prefix(request.bytes);
  }
  metrics::FormatFor(input);
}

}  // namespace gantry::fuzz
