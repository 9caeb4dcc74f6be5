// SPDX-License-Identifier: Apache-2.0
//
// What a client that streams says: the first bytes of frames.
#include "core/io/stream_messages.h"
#include "tests/fuzz/fuzz.h"

namespace gantry::fuzz {

void FuzzOne(std::string_view input) {
  using Kind = io::StreamHead::Kind;
  const std::string_view seen = input.substr(0, io::kStreamHeadBytes);
  const io::StreamHead head = io::ReadStreamHead(1, seen);
  switch (head.kind) {
    case Kind::kPart:
      Require(seen.size() < io::kStreamHeadBytes, "so many bytes tell what a frame is");
      break;
    case Kind::kBad:
      break;
    case Kind::kData:
      Require(head.bytes > 10 && head.bytes <= seen.size(), "all before the data is there");
      break;
    default:
      Require(head.bytes >= 10 && head.bytes <= io::kStreamHeadBytes, "others are short");
      Require(head.bytes <= seen.size(), "and there as a whole");
  }
}

}  // namespace gantry::fuzz
