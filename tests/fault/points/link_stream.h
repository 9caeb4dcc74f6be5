// SPDX-License-Identifier: Apache-2.0
//
// The messages between engine and keeper, as they pass by.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gantry::fault {

/// `Spawn`; empty for what is no step of an operation: the heartbeat.
std::string_view MessageName(uint16_t type);

/// Finds where messages begin in one direction of the link. Thread: one.
class LinkStream {
 public:
  /// Calls `seen(type)` for each header that ends in these bytes.
  template <class Seen>
  void Feed(const char* data, size_t size, const Seen& seen) {
    for (size_t i = 0; i < size; ++i) {
      if (body_left_ > 0) {
        const size_t skipped = body_left_ < size - i ? body_left_ : size - i;
        body_left_ -= skipped;
        i += skipped - 1;
        continue;
      }
      header_[filled_++] = static_cast<uint8_t>(data[i]);
      if (filled_ == header_.size()) {
        filled_ = 0;
        body_left_ =
            header_[0] | header_[1] << 8 | header_[2] << 16 | static_cast<size_t>(header_[3]) << 24;
        seen(static_cast<uint16_t>(header_[4] | header_[5] << 8));
      }
    }
  }

 private:
  std::array<uint8_t, 8> header_{};
  size_t filled_ = 0;
  size_t body_left_ = 0;
};

}  // namespace gantry::fault
