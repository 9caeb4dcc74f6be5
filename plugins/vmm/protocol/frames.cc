// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/protocol/frames.h"

namespace gantry::vmm::protocol {

std::array<char, kHeaderBytes> HeaderOf(size_t length) {
  return {static_cast<char>(length >> 24), static_cast<char>(length >> 16),
          static_cast<char>(length >> 8), static_cast<char>(length)};
}

size_t LengthIn(std::string_view header) {
  size_t length = 0;
  for (const char byte : header.substr(0, kHeaderBytes)) {
    length = length << 8 | static_cast<uint8_t>(byte);
  }
  return length;
}

std::string Framed(std::string_view payload) {
  const auto header = HeaderOf(payload.size());
  std::string out(header.data(), header.size());
  out += payload;
  return out;
}

void FrameReader::Feed(std::string_view bytes) {
  if (taken_ > 0) {
    bytes_.erase(0, taken_);
    taken_ = 0;
  }
  bytes_ += bytes;
}

Result<std::optional<std::string>> FrameReader::Next() {
  const std::string_view left = std::string_view(bytes_).substr(taken_);
  if (left.size() < kHeaderBytes) {
    return std::optional<std::string>();
  }
  const size_t length = LengthIn(left);
  if (length > most_) {
    return Fail(Code::kResourceExhausted, "read a frame: it has {} bytes, at most {}", length,
                most_);
  }
  if (length == 0) {
    return Fail(Code::kInvalidArgument, "read a frame: it is empty");
  }
  if (left.size() - kHeaderBytes < length) {
    return std::optional<std::string>();
  }
  std::string frame(left.substr(kHeaderBytes, length));
  taken_ += kHeaderBytes + length;
  if (taken_ == bytes_.size()) {
    // What a long one took is given back.
    std::string().swap(bytes_);
    taken_ = 0;
  }
  return std::optional(std::move(frame));
}

}  // namespace gantry::vmm::protocol
