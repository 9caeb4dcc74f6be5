// SPDX-License-Identifier: Apache-2.0
//
// What a containerd could send on a socket: frames, and requests and answers in
// them. The keeper and the rest have a splitter each; both must see the same
// frames, whatever the reads that the bytes came in.
#include <algorithm>
#include <string>
#include <vector>

#include "core/keeper/frames.h"
#include "core/rpc/ttrpc.h"
#include "tests/fuzz/fuzz.h"

namespace gantry::fuzz {
namespace {

/// The first byte of the input says how long each read is.
std::vector<std::string_view> Reads(std::string_view input) {
  const size_t length = size_t{TakeByte(input)} + 1;
  std::vector<std::string_view> reads;
  while (!input.empty()) {
    reads.push_back(input.substr(0, length));
    input.remove_prefix(reads.back().size());
  }
  return reads;
}

void CheckRequest(std::string_view bytes) {
  const Result<rpc::Request> request = rpc::DecodeRequest(bytes);
  IgnoreError(rpc::DecodeResponse(bytes), "it only must not crash");
  IgnoreError(keeper::StreamIdOf(bytes), "the same");
  if (!request) {
    return;
  }
  const Result<rpc::Request> again = rpc::DecodeRequest(rpc::EncodeRequest(*request));
  Require(again.has_value(), "an encoded request is read again");
  Require(again->service == request->service && again->method == request->method &&
              again->payload == request->payload && again->timeout == request->timeout &&
              again->metadata == request->metadata,
          "an encoded request is read as the same");
  Require(keeper::RequestTimeout(bytes) == std::max(request->timeout, std::chrono::nanoseconds(0)),
          "keeper and engine read the same timeout");
  Require(keeper::OpensStream(rpc::EncodeRequest(*request)) ==
              (request->service == "containerd.services.streaming.v1.Streaming" &&
               request->method == "Stream"),
          "keeper and engine read the same method");
}

}  // namespace

void FuzzOne(std::string_view input) {
  rpc::FrameSplitter engines;
  keeper::FrameSplitter keepers;
  std::vector<rpc::Frame> seen;
  std::vector<keeper::Frame> keeper_seen;
  for (const std::string_view read : Reads(input)) {
    engines.Feed(read);
    while (auto frame = engines.Next()) {
      seen.push_back(std::move(*frame));
    }
    keepers.Feed(read, [&](keeper::Frame frame) { keeper_seen.push_back(std::move(frame)); });
  }
  for (size_t i = 0; i < std::min(seen.size(), keeper_seen.size()); ++i) {
    Require(seen[i].header.stream == keeper_seen[i].stream &&
                seen[i].header.type == keeper_seen[i].type &&
                seen[i].header.flags == keeper_seen[i].flags &&
                seen[i].data == keeper_seen[i].payload &&
                seen[i].oversized == keeper_seen[i].skipped,
            "both splitters see the same frame");
    CheckRequest(seen[i].data);
  }
  // An oversized frame is told before or after its data was skipped.
  Require(keeper_seen.size() <= seen.size() && seen.size() <= keeper_seen.size() + 1,
          "both splitters see the same number of frames");
  CheckRequest(input);
}

}  // namespace gantry::fuzz
