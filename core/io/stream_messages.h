// SPDX-License-Identifier: Apache-2.0
//
// What containerd and a shim say to each other on a stream of
// `containerd.services.streaming.v1.Streaming`, as bytes: frames of ttrpc around an Any with a
// `containerd.types.transfer.Data` or `...WindowUpdate`. Who sends data may send as many bytes as
// the other side has allowed; a frame without data that says "closed" is the end.
// Source: containerd 2.3.4, core/transfer/streaming, core/streaming/proxy; ttrpc 1.2.8,
// PROTOCOL.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gantry::io {

/// Bytes of data that one frame has at most. Source: containerd 2.3.4, maxRead: what reads in
/// pieces of that size counts longer ones wrongly (readByteStream.Read).
inline constexpr size_t kStreamDataBytes = size_t{32} << 10;
/// What a client is allowed to send before it is allowed more.
inline constexpr size_t kStreamWindowBytes = size_t{64} << 10;
/// So many bytes tell what a frame is; one that is not data has no more.
inline constexpr size_t kStreamHeadBytes = 256;

/// What comes before `bytes` bytes of data, which end the frame.
std::string StreamDataHead(uint32_t stream, size_t bytes);
/// A whole frame: so many bytes more may be sent.
std::string StreamWindowFrame(uint32_t stream, uint32_t update);
/// A whole frame: nothing comes any more.
std::string StreamEndFrame(uint32_t stream);

struct StreamHead {
  enum class Kind {
    /// More bytes are needed.
    kPart,
    /// The data begins behind `bytes`.
    kData,
    kWindow,
    kEnd,
    /// Something that is to be ignored.
    kOther,
    /// It is not what containerd sends.
    kBad,
  };

  Kind kind = Kind::kPart;
  /// Of the frame, but for data: of what comes before that.
  size_t bytes = 0;
  /// Bytes of data; how much the window grows.
  uint32_t value = 0;
  /// The data is the last.
  bool last = false;
};

/// What begins with `bytes`, up to `kStreamHeadBytes` of what has come.
StreamHead ReadStreamHead(uint32_t stream, std::string_view bytes);

}  // namespace gantry::io
