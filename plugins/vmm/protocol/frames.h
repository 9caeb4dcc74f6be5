// SPDX-License-Identifier: Apache-2.0
//
// The frames of all connections between guest and host: the length in four bytes, the highest
// first, and so many bytes. On the control connection each is an `Envelope`, and none is empty. On
// a stream the first one is its token; what follows are bytes of the stream, and the empty frame is
// its end, as `StreamFraming::kFrames` has it (gantry/process.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <gantry/error.h>

namespace gantry::vmm::protocol {

inline constexpr size_t kHeaderBytes = 4;
/// Of one frame of the control connection: what the host sends has a config.json in it, what the
/// guest sends is no longer than the list of a container's processes.
inline constexpr size_t kMaxFromHost = size_t{4} << 20;
inline constexpr size_t kMaxFromGuest = size_t{1} << 20;
/// Of a token, which its host has made of random letters.
inline constexpr size_t kTokenBytes = 32;

std::array<char, kHeaderBytes> HeaderOf(size_t length);
size_t LengthIn(std::string_view header);

/// `payload` behind its header.
std::string Framed(std::string_view payload);

/// Cuts frames out of what comes, which is kept only as far as it has come: a length alone makes
/// nobody take memory. Thread: one.
class FrameReader {
 public:
  explicit FrameReader(size_t most) : most_(most) {}

  void Feed(std::string_view bytes);
  /// The next whole frame. None: it has not come yet. Errors: kResourceExhausted: it is longer than
  /// it may be; kInvalidArgument: it is empty. Then the connection is of no use.
  Result<std::optional<std::string>> Next();

 private:
  size_t most_;
  std::string bytes_;
  /// Of them, those that `Next` has given.
  size_t taken_ = 0;
};

}  // namespace gantry::vmm::protocol
