// SPDX-License-Identifier: Apache-2.0
//
// A buffer of the guest's that lies in pieces.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

namespace gantry::vmm::vsock {

/// Without the first `bytes`, of which there are as many.
inline std::span<iovec> Skip(std::span<iovec> pieces, size_t bytes) {
  while (bytes > 0) {
    iovec& first = pieces.front();
    if (first.iov_len > bytes) {
      first.iov_base = static_cast<std::byte*>(first.iov_base) + bytes;
      first.iov_len -= bytes;
      break;
    }
    bytes -= first.iov_len;
    pieces = pieces.subspan(1);
  }
  return pieces;
}

/// The first `bytes` of them, or all.
inline std::span<iovec> Trim(std::span<iovec> pieces, size_t bytes) {
  size_t count = 0;
  while (count < pieces.size() && bytes > 0) {
    pieces[count].iov_len = std::min(pieces[count].iov_len, bytes);
    bytes -= pieces[count].iov_len;
    ++count;
  }
  return pieces.first(count);
}

/// The first `size` bytes, of which there are as many, once: the guest may change them meanwhile.
inline void CopyOut(std::span<const iovec> pieces, void* to, size_t size) {
  auto* at = static_cast<std::byte*>(to);
  for (const iovec& one : pieces) {
    const size_t count = std::min(one.iov_len, size);
    memcpy(at, one.iov_base, count);
    at += count;
    size -= count;
    if (size == 0) {
      break;
    }
  }
  // What was read is what is decided by.
  asm volatile("" ::: "memory");
}

}  // namespace gantry::vmm::vsock
