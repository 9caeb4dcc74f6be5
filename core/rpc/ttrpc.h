// SPDX-License-Identifier: Apache-2.0
//
// The ttrpc protocol as bytes: frames, and the Request and Response messages
// inside them. No sockets, no protobuf library: small static programs may link
// this (target gantry_ttrpc).
//
// A frame is a header of ten bytes, big endian (u32 length of the data, u32
// stream, u8 type, u8 flags), and the data, at most 4 MiB. A client numbers its
// streams 1, 3, 5 and so on. There is no handshake, no ping and no cancel: a
// client that gives up just stops caring.
// Source: containerd/ttrpc 1.2, PROTOCOL.md and channel.go.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gantry/error.h>

namespace gantry::rpc {

constexpr size_t kFrameHeaderBytes = 10;
constexpr size_t kMaxFrameBytes = size_t{4} << 20;
/// A request with more key-value pairs is refused.
constexpr size_t kMaxMetadata = 256;
/// Longer error messages are cut.
constexpr size_t kMaxMessageBytes = size_t{16} << 10;

/// `text` as UTF-8, at most `max_bytes` of it, `?` for what is none.
std::string CleanText(std::string_view text, size_t max_bytes = kMaxMessageBytes);

/// The key under which a namespace travels. Source: containerd 2.3.4, pkg/namespaces/ttrpc.go.
inline constexpr std::string_view kNamespaceKey = "containerd-namespace-ttrpc";

enum class FrameType : uint8_t { kRequest = 1, kResponse = 2, kData = 3 };

enum FrameFlags : uint8_t { kRemoteClosed = 1, kRemoteOpen = 2, kNoData = 4 };

struct FrameHeader {
  uint32_t length = 0;
  uint32_t stream = 0;
  /// As on the wire: types that `FrameType` does not name must be ignored.
  uint8_t type = 0;
  uint8_t flags = 0;
};

/// `bytes` must hold `kFrameHeaderBytes`. Every length is accepted here.
FrameHeader DecodeFrameHeader(std::string_view bytes);

/// A whole frame. Errors: kResourceExhausted when `data` is above `kMaxFrameBytes`.
Result<std::string> EncodeFrame(uint32_t stream, FrameType type, uint8_t flags,
                                std::string_view data);

struct Frame {
  FrameHeader header;
  /// Empty where `oversized`: that data was skipped, the connection goes on.
  std::string data;
  bool oversized = false;
};

/// Cuts a byte stream into frames, whatever the reads it came in.
/// Holds at most one frame and what was fed beyond it. Thread: any, one at a time.
class FrameSplitter {
 public:
  void Feed(std::string_view bytes);
  /// The next whole frame, if there is one already.
  std::optional<Frame> Next();

 private:
  std::optional<Frame> SkipOversized(const FrameHeader& header);

  std::string buffer_;
  size_t begin_ = 0;
  /// What is still to be skipped of an oversized frame.
  size_t skip_ = 0;
};

/// Keys are in lower case; repeated keys form a list.
using Metadata = std::vector<std::pair<std::string, std::string>>;

/// The first value of `key`, or empty.
std::string_view FindMetadata(const Metadata& metadata, std::string_view key);

struct Request {
  std::string service;
  std::string method;
  std::string payload;
  /// Relative; 0: none. A negative one has passed already.
  std::chrono::nanoseconds timeout{0};
  Metadata metadata;
};

/// `code` 0: success with `payload`; else the error that `code` and `message` tell.
struct Response {
  Code code = Code::kOk;
  std::string message;
  std::string payload;
};

std::string EncodeRequest(const Request& request);
/// Errors: kInvalidArgument for malformed bytes and for too much metadata.
Result<Request> DecodeRequest(std::string_view bytes);

/// A message that is not UTF-8 is made so: a Go peer would refuse the whole answer.
std::string EncodeResponse(const Response& response);
std::string EncodeResponse(const Result<std::string>& result);
/// The body of an answer: the payload, or the error that the server answered.
/// `detail` of that error is empty. Errors besides: kInternal for malformed bytes.
Result<std::string> DecodeResponse(std::string_view bytes);

}  // namespace gantry::rpc
