// SPDX-License-Identifier: Apache-2.0
//
// Answers to packets of streams that there are none of. A guest that sends more of them than fit
// while it takes none gets no answer to the rest.
#pragma once

#include <array>
#include <cstddef>

#include "plugins/vmm/vsock/stream.h"

namespace gantry::vmm::vsock {

/// Thread: the loop's.
class Resets {
 public:
  static constexpr size_t kMost = 256;

  void Add(const Ports& ports) {
    const bool is_last = count_ > 0 && all_[(begin_ + count_ - 1) % kMost] == ports;
    if (count_ == kMost || is_last) {
      return;
    }
    all_[(begin_ + count_) % kMost] = ports;
    ++count_;
  }

  bool IsEmpty() const { return count_ == 0; }

  const Ports& front() const { return all_[begin_]; }

  void Pop() {
    begin_ = (begin_ + 1) % kMost;
    --count_;
  }

  void Clear() { count_ = 0; }

 private:
  std::array<Ports, kMost> all_{};
  size_t begin_ = 0;
  size_t count_ = 0;
};

}  // namespace gantry::vmm::vsock
