// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/vsock/virtqueue.h"

#include <atomic>
#include <bit>

namespace gantry::vmm::vsock {
namespace {

constexpr uint16_t kContinues = 1;
constexpr uint16_t kForWriting = 2;
constexpr uint16_t kIndirect = 4;
/// In the flags of the used and of the available ring.
constexpr uint16_t kNoNotify = 1;
constexpr uint16_t kNoInterrupt = 1;

constexpr size_t kDescriptorBytes = 16;
constexpr size_t kUsedBytes = 8;
/// Flags and index, two bytes each.
constexpr size_t kRingHead = 4;
constexpr size_t kIndexAt = 2;

/// Orders with all others of this kind, here and in the guest, where it is asked whether the
/// other side wants to hear of something.
constexpr auto kOrdered = std::memory_order_seq_cst;

std::atomic_ref<uint16_t> Word(std::byte* at) {
  return std::atomic_ref<uint16_t>(*reinterpret_cast<uint16_t*>(at));
}

std::atomic_ref<uint64_t> Long(std::byte* at) {
  return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(at));
}

bool IsAligned(const std::byte* at, size_t to) { return std::bit_cast<uintptr_t>(at) % to == 0; }

/// Whether what went from `old` to `fresh` has passed `event`. Source: 2.7.10.
bool Passed(uint16_t event, uint16_t fresh, uint16_t old) {
  return static_cast<uint16_t>(fresh - event - 1) < static_cast<uint16_t>(fresh - old);
}

}  // namespace

Status Virtqueue::Start(const GuestMemory& memory, const QueueLayout& layout, uint16_t base,
                        Access access, bool event_index) {
  running_ = false;
  broken_ = false;
  memory_ = &memory;
  layout_ = layout;
  access_ = access;
  event_index_ = event_index;
  next_ = base;
  GANTRY_CHECK_OK(Locate());
  used_next_ = Word(used_ + kIndexAt).load(kOrdered);
  told_ = used_next_;
  running_ = true;
  Disarm();
  return {};
}

uint16_t Virtqueue::Stop() {
  running_ = false;
  return next_;
}

Status Virtqueue::Remap() {
  if (!running_) {
    return {};
  }
  running_ = false;
  GANTRY_CHECK_OK(Locate());
  running_ = true;
  return {};
}

Status Virtqueue::Locate() {
  const uint64_t size = layout_.size;
  if (size == 0 || size > kMaxSize || !std::has_single_bit(size)) {
    return Fail(Code::kInvalidArgument,
                "start a queue of {} entries: none, too many or no power of 2", size);
  }
  // With the word behind each ring, be it used or not.
  descriptors_ = memory_->AtFrontEnd(layout_.descriptors, size * kDescriptorBytes);
  available_ = memory_->AtFrontEnd(layout_.available, kRingHead + 2 * size + 2);
  used_ = memory_->AtFrontEnd(layout_.used, kRingHead + kUsedBytes * size + 2);
  if (descriptors_ == nullptr || available_ == nullptr || used_ == nullptr ||
      !IsAligned(descriptors_, kDescriptorBytes) || !IsAligned(available_, 2) ||
      !IsAligned(used_, 4)) {
    return Fail(Code::kInvalidArgument,
                "start a queue of {} entries at {:#x}, {:#x}, {:#x}: not in the guest's memory",
                size, layout_.descriptors, layout_.available, layout_.used);
  }
  return {};
}

Virtqueue::Next Virtqueue::Break() {
  broken_ = true;
  return Next::kBroken;
}

Virtqueue::Descriptor Virtqueue::Read(uint16_t index) const {
  std::byte* const at = descriptors_ + index * kDescriptorBytes;
  const uint64_t address = Long(at).load(std::memory_order_relaxed);
  const uint64_t rest = Long(at + 8).load(std::memory_order_relaxed);
  return {.address = address,
          .length = static_cast<uint32_t>(rest),
          .flags = static_cast<uint16_t>(rest >> 32),
          .next = static_cast<uint16_t>(rest >> 48)};
}

uint16_t Virtqueue::LoadAvailable(size_t index) const {
  return Word(available_ + kRingHead + 2 * index).load(std::memory_order_relaxed);
}

/// False: it is none that this queue may have.
bool Virtqueue::Append(const Descriptor& descriptor, std::span<iovec> into, Chain& chain,
                       bool& fits) const {
  const bool for_writing = (descriptor.flags & kForWriting) != 0;
  if ((descriptor.flags & kIndirect) != 0 || for_writing != (access_ == Access::kWrite)) {
    return false;
  }
  uint64_t address = descriptor.address;
  uint64_t left = descriptor.length;
  while (left > 0) {
    if (chain.pieces == kMaxPieces) {
      return false;
    }
    if (chain.pieces == into.size()) {
      fits = false;
      return true;
    }
    // What lies together in the guest may lie apart here.
    const std::span<std::byte> piece = memory_->AtGuest(address, left);
    if (piece.empty()) {
      return false;
    }
    into[chain.pieces++] = {.iov_base = piece.data(), .iov_len = piece.size()};
    chain.bytes += piece.size();
    address += piece.size();
    left -= piece.size();
  }
  return true;
}

Virtqueue::Next Virtqueue::Pop(std::span<iovec> into, Chain& chain) {
  if (broken_ || !running_) {
    return running_ ? Next::kBroken : Next::kEmpty;
  }
  const uint16_t available = Word(available_ + kIndexAt).load(std::memory_order_acquire);
  const auto waiting = static_cast<uint16_t>(available - next_);
  if (waiting == 0) {
    return Next::kEmpty;
  }
  if (waiting > layout_.size) {
    return Break();
  }
  chain = {.head = LoadAvailable(next_ % layout_.size)};
  uint16_t index = chain.head;
  bool fits = true;
  // No more than there are, so that a circle has an end.
  for (uint32_t count = 0;; ++count) {
    if (index >= layout_.size || count == layout_.size) {
      return Break();
    }
    const Descriptor descriptor = Read(index);
    if (!Append(descriptor, into, chain, fits)) {
      return Break();
    }
    if (!fits) {
      return Next::kEmpty;
    }
    if ((descriptor.flags & kContinues) == 0) {
      break;
    }
    index = descriptor.next;
  }
  ++next_;
  return Next::kChain;
}

void Virtqueue::Push(uint16_t head, uint32_t written) {
  std::byte* const at = used_ + kRingHead + kUsedBytes * (used_next_ % layout_.size);
  // Two halves, since the ring is aligned to 4.
  std::atomic_ref<uint32_t>(*reinterpret_cast<uint32_t*>(at))
      .store(head, std::memory_order_relaxed);
  std::atomic_ref<uint32_t>(*reinterpret_cast<uint32_t*>(at + 4))
      .store(written, std::memory_order_relaxed);
  ++used_next_;
}

void Virtqueue::Publish() { Word(used_ + kIndexAt).store(used_next_, kOrdered); }

bool Virtqueue::MustTell() {
  const uint16_t old = told_;
  if (old == used_next_) {
    return false;
  }
  told_ = used_next_;
  if (!event_index_) {
    return (Word(available_).load(kOrdered) & kNoInterrupt) == 0;
  }
  const uint16_t event = Word(available_ + kRingHead + size_t{2} * layout_.size).load(kOrdered);
  return Passed(event, used_next_, old);
}

bool Virtqueue::HasMore() const {
  return running_ && !broken_ && Word(available_ + kIndexAt).load(kOrdered) != next_;
}

bool Virtqueue::Arm() {
  if (!running_ || broken_) {
    return false;
  }
  if (event_index_) {
    Word(used_ + kRingHead + kUsedBytes * layout_.size).store(next_, kOrdered);
  } else {
    Word(used_).store(0, kOrdered);
  }
  return HasMore();
}

void Virtqueue::Disarm() {
  if (running_ && !event_index_) {
    // With an event index it is enough that the index falls behind.
    Word(used_).store(kNoNotify, std::memory_order_relaxed);
  }
}

}  // namespace gantry::vmm::vsock
