// SPDX-License-Identifier: Apache-2.0
//
// Bytes of one stream that the host's socket has not taken yet, in a ring in memory that is the
// stream's place of the device's. At most as many as the guest has credit for, so that they always
// fit; none in a stream whose reader keeps up. Its pages are given back when it is empty.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace gantry::vmm::vsock {

/// Thread: the loop's.
class Backlog {
 public:
  Backlog() = default;

  /// `place`: of whole pages. Owner: borrowed.
  explicit Backlog(std::span<std::byte> place) : place_(place) {}

  bool IsEmpty() const { return size_ == 0; }

  size_t size() const { return size_; }

  /// False: it does not fit, and nothing was taken. Pieces that cannot be read (the file below
  /// them was cut short) end the program.
  bool Append(std::span<const iovec> pieces);

  /// What comes next, in one or two pieces. Returns how many.
  size_t Front(std::span<iovec, 2> pieces) const;
  void Consume(size_t bytes);
  void Clear();

 private:
  void GiveBack();

  std::span<std::byte> place_;
  size_t begin_ = 0;
  size_t size_ = 0;
  /// How much of the place was written to since it was given back.
  size_t touched_ = 0;
};

}  // namespace gantry::vmm::vsock
