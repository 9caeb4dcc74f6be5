// SPDX-License-Identifier: Apache-2.0
//
// The part of ttrpc that the keeper must understand: where a message begins and
// ends, when the client stops caring, and how to refuse. Services and
// payloads are the engine's business.
// Source: containerd/ttrpc 1.2.8, PROTOCOL.md and channel.go.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <gantry/error.h>

#include "core/keeper/state.h"

namespace gantry::keeper {

inline constexpr size_t kFrameHeaderBytes = 10;
/// A longer payload is refused, by both sides.
inline constexpr size_t kMaxPayload = 4U << 20;

inline constexpr uint8_t kFrameRequest = 1;
inline constexpr uint8_t kFrameResponse = 2;
inline constexpr uint8_t kFrameData = 3;
inline constexpr uint8_t kFlagRemoteClosed = 0x01;
inline constexpr uint8_t kFlagRemoteOpen = 0x02;

struct Frame {
  uint32_t length = 0;
  uint32_t stream = 0;
  uint8_t type = 0;
  uint8_t flags = 0;
  /// Empty where `skipped`.
  std::string payload;
  /// Longer than `kMaxPayload`, or there was no room for it: read and dropped.
  bool skipped = false;
};

/// Cuts a stream of bytes into frames. Thread: any, one at a time.
class FrameSplitter {
 public:
  /// Called for each whole frame.
  using OnFrame = std::function<void(Frame)>;

  void Feed(std::string_view bytes, const OnFrame& on_frame);

  /// So many more bytes are of this frame, or of its header, for sure.
  size_t wanted() const {
    return header_got_ < kFrameHeaderBytes ? kFrameHeaderBytes - header_got_
                                           : frame_.length - payload_got_;
  }

  /// Bytes kept of a frame that is not complete.
  size_t held() const { return frame_.payload.size(); }

  /// What there is of a frame that is not complete, for another splitter.
  state::Partial Save() const;
  /// Only before the first `Feed`.
  void Restore(const state::Partial& partial);

  /// Drops what is held; the rest of that frame will be skipped.
  void SkipCurrent();

 private:
  bool TakeHeader(std::string_view& bytes);

  std::array<char, kFrameHeaderBytes> header_{};
  size_t header_got_ = 0;
  size_t payload_got_ = 0;
  Frame frame_;
};

/// A Response frame around an encoded Response message.
std::string ResponseFrame(uint32_t stream, std::string_view response);

/// The frame by which a server says that a stream is open: a message without anything in it.
std::string StreamOpenFrame(uint32_t stream);

/// Whether an encoded Request message opens a stream of containerd's Streaming service.
bool OpensStream(std::string_view request);

/// The id in the first message on such a stream. Errors: kInvalidArgument.
/// Source: containerd 2.3.4, core/streaming/proxy/streaming.go.
Result<std::string> StreamIdOf(std::string_view message);

/// The Response message that says `code`. `message` ends with the class's own words,
/// as containerd expects it.
std::string ErrorResponse(Code code, std::string_view message);

/// The method that an encoded Request message names; "" for none and for malformed bytes.
std::string RequestMethod(std::string_view request);

/// timeout_nano of an encoded Request message; 0 for none and for malformed bytes.
std::chrono::nanoseconds RequestTimeout(std::string_view request);

}  // namespace gantry::keeper
