// SPDX-License-Identifier: Apache-2.0
//
// One split virtqueue in a guest's memory, from the device's side. All that the guest writes there
// is taken for a lie until it has been looked at: a descriptor's number that is too large, a chain
// in a circle, an address outside of its memory, a descriptor for writing where one for reading is
// due (and the other way round), an indirect one (never offered), more than the queue can hold.
// Each of them breaks the queue, for good: a driver that does so cannot be served.
//
// Buffers go back in the order in which they came.
// Source: Virtual I/O Device Version 1.3, 2.7, "Split Virtqueues"; 2.7.7.1, 2.7.10, for
// notifications.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include <gantry/error.h>

#include "plugins/vmm/vsock/guest_memory.h"

namespace gantry::vmm::vsock {

/// Addresses are the front end's.
struct QueueLayout {
  uint32_t size = 0;
  uint64_t descriptors = 0;
  uint64_t available = 0;
  uint64_t used = 0;
};

/// A buffer of the guest's, in the pieces in which it lies here.
struct Chain {
  uint16_t head = 0;
  /// How many pieces there are.
  size_t pieces = 0;
  uint64_t bytes = 0;
};

/// Thread: the loop's.
class Virtqueue {
 public:
  static constexpr uint32_t kMaxSize = 1024;
  /// A Linux guest's largest packet has a header and up to 45 fragments. Source: Linux 6.12,
  /// CONFIG_MAX_SKB_FRAGS.
  static constexpr size_t kMaxPieces = 64;

  enum class Access : uint8_t { kRead, kWrite };
  enum class Next : uint8_t { kChain, kEmpty, kBroken };

  /// `memory` stays where it is until `Stop`. `base`: the first entry of the available ring that
  /// is not served yet. Errors: kInvalidArgument.
  Status Start(const GuestMemory& memory, const QueueLayout& layout, uint16_t base, Access access,
               bool event_index);
  /// Returns the base of a next `Start`.
  uint16_t Stop();
  /// The memory has been mapped anew. Errors: as `Start`; it is stopped then.
  Status Remap();

  bool is_running() const { return running_; }

  uint32_t size() const { return layout_.size; }

  /// The next buffer, its pieces from the begin of `into` on; kEmpty where no more fit in there,
  /// too.
  Next Pop(std::span<iovec> into, Chain& chain);

  /// The last `count` that were popped were not.
  void Unpop(uint16_t count) { next_ = static_cast<uint16_t>(next_ - count); }

  /// The guest has it back once `Publish` is called.
  void Push(uint16_t head, uint32_t written);
  void Publish();

  /// Buffers that were pushed since the guest was last interrupted.
  uint16_t untold() const { return static_cast<uint16_t>(used_next_ - told_); }

  /// Whether it wants to be interrupted for what was published. They are told by then.
  bool MustTell();

  /// Asks to be notified of what the guest puts in from here on. True: there is something already.
  bool Arm();
  /// Notifications are of no use for now. A guest may send some all the same.
  void Disarm();
  bool HasMore() const;

 private:
  struct Descriptor {
    uint64_t address;
    uint32_t length;
    uint16_t flags;
    uint16_t next;
  };

  Status Locate();
  Descriptor Read(uint16_t index) const;
  uint16_t LoadAvailable(size_t index) const;
  bool Append(const Descriptor& descriptor, std::span<iovec> into, Chain& chain, bool& fits) const;
  Next Break();

  const GuestMemory* memory_ = nullptr;
  QueueLayout layout_;
  Access access_ = Access::kRead;
  bool event_index_ = false;
  bool running_ = false;
  bool broken_ = false;
  std::byte* descriptors_ = nullptr;
  std::byte* available_ = nullptr;
  std::byte* used_ = nullptr;
  /// Counted on and on, modulo 2^16, as the guest counts.
  uint16_t next_ = 0;
  uint16_t used_next_ = 0;
  uint16_t told_ = 0;
};

}  // namespace gantry::vmm::vsock
