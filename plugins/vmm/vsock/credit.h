// SPDX-License-Identifier: Apache-2.0
//
// The credits of one stream, both ways: how many bytes each side may still send. All counters
// count on and on, modulo 2^32, as the wire has them. What the guest says of its own window is
// believed only as far as it harms the guest alone.
// Source: Virtual I/O Device Version 1.3, 5.10.6.3, "Buffer Space Management".
#pragma once

#include <cstdint>

namespace gantry::vmm::vsock {

/// What the guest sends to the host: at most `window` bytes that have not been forwarded.
class GuestCredit {
 public:
  explicit GuestCredit(uint32_t window = 0) : window_(window) {}

  uint32_t window() const { return window_; }

  uint32_t forwarded() const { return forwarded_; }

  /// False: it had no credit for that.
  bool Receive(uint32_t bytes) {
    if (bytes > window_ - (received_ - forwarded_)) {
      return false;
    }
    received_ += bytes;
    return true;
  }

  void Forward(uint32_t bytes) { forwarded_ += bytes; }

  /// A packet with all of this has been sent.
  void Told() { told_ = forwarded_; }

  /// It should hear of it: half of what it may send is not known to it. Until then it can go on,
  /// or what it has sent still waits here.
  bool MustTell() const { return forwarded_ - told_ >= window_ / 2; }

 private:
  uint32_t window_;
  uint32_t received_ = 0;
  uint32_t forwarded_ = 0;
  uint32_t told_ = 0;
};

/// What the host sends to the guest.
class HostCredit {
 public:
  /// As the guest's last packet had it.
  void Learn(uint32_t window, uint32_t forwarded) {
    window_ = window;
    forwarded_ = forwarded;
  }

  uint32_t Free() const {
    const uint32_t waiting = sent_ - forwarded_;
    return waiting < window_ ? window_ - waiting : 0;
  }

  void Send(uint32_t bytes) { sent_ += bytes; }

 private:
  uint32_t window_ = 0;
  uint32_t forwarded_ = 0;
  uint32_t sent_ = 0;
};

}  // namespace gantry::vmm::vsock
