// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/vsock/backlog.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace gantry::vmm::vsock {

bool Backlog::Append(std::span<const iovec> pieces) {
  size_t total = 0;
  for (const iovec& one : pieces) {
    total += one.iov_len;
  }
  if (total > place_.size() - size_) {
    return false;
  }
  for (const iovec& one : pieces) {
    const auto* from = static_cast<const std::byte*>(one.iov_base);
    size_t left = one.iov_len;
    while (left > 0) {
      const size_t at = (begin_ + size_) % place_.size();
      const size_t count = std::min(left, place_.size() - at);
      memcpy(place_.data() + at, from, count);
      touched_ = std::max(touched_, at + count);
      size_ += count;
      from += count;
      left -= count;
    }
  }
  return true;
}

size_t Backlog::Front(std::span<iovec, 2> pieces) const {
  if (size_ == 0) {
    return 0;
  }
  const size_t first = std::min(size_, place_.size() - begin_);
  pieces[0] = {.iov_base = place_.data() + begin_, .iov_len = first};
  if (first == size_) {
    return 1;
  }
  pieces[1] = {.iov_base = place_.data(), .iov_len = size_ - first};
  return 2;
}

void Backlog::Consume(size_t bytes) {
  size_ -= bytes;
  begin_ = (begin_ + bytes) % place_.size();
  if (size_ == 0) {
    GiveBack();
  }
}

void Backlog::Clear() {
  size_ = 0;
  GiveBack();
}

void Backlog::GiveBack() {
  begin_ = 0;
  if (touched_ > 0) {
    madvise(place_.data(), touched_, MADV_DONTNEED);
    touched_ = 0;
  }
}

}  // namespace gantry::vmm::vsock
