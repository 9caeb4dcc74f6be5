// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/vsock/stream_table.h"

#include <sys/mman.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <memory>

namespace gantry::vmm::vsock {
namespace {

constexpr size_t kLargeBytes = kLargeWindows * kLargeWindow;
/// No page is larger.
constexpr size_t kPage = 65536;
constexpr size_t kStreamBytes = (kMaxStreams * sizeof(Stream) + kPage - 1) / kPage * kPage;
constexpr size_t kAllBytes =
    kStreamBytes + kLargeBytes + (kMaxStreams - kLargeWindows) * kSmallWindow;

}  // namespace

StreamTable::~StreamTable() {
  if (streams_ != nullptr) {
    ForEach([this](Stream& stream) { Remove(stream); });
    munmap(streams_, kAllBytes);
  }
}

Status StreamTable::Reserve(size_t most) {
  void* const all = mmap(nullptr, kAllBytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) {
    return FailErrno(errno, "reserve {} bytes for streams", kAllBytes);
  }
  // A huge page for each stream that is touched would be most of it.
  madvise(all, kAllBytes, MADV_NOHUGEPAGE);
  streams_ = static_cast<Stream*>(all);
  places_ = static_cast<std::byte*>(all) + kStreamBytes;
  most_ = std::min(most, kMaxStreams);
  buckets_.fill(kNoStream);
  // So that a guest does not know which of its ports share a bucket.
  if (getrandom(&seed_, sizeof(seed_), 0) != sizeof(seed_)) {
    return FailErrno(errno, "get random bytes");
  }
  return {};
}

std::span<std::byte> StreamTable::PlaceOf(size_t index) const {
  if (index < kLargeWindows) {
    return {places_ + index * kLargeWindow, kLargeWindow};
  }
  return {places_ + kLargeBytes + (index - kLargeWindows) * kSmallWindow, kSmallWindow};
}

Stream* StreamTable::Add(StreamState state) {
  size_t index = 0;
  while (index < most_ && taken_.test(index)) {
    ++index;
  }
  if (index == most_) {
    return nullptr;
  }
  taken_.set(index);
  ++count_;
  const std::span<std::byte> place = PlaceOf(index);
  Stream& stream = *std::construct_at(streams_ + index);
  stream.state = state;
  stream.generation = next_generation_++;
  stream.from_guest = GuestCredit(static_cast<uint32_t>(place.size()));
  stream.backlog = Backlog(place);
  return &stream;
}

void StreamTable::Remove(Stream& stream) {
  Unname(stream);
  Unqueue(stream);
  stream.backlog.Clear();
  taken_.reset(IndexOf(stream));
  --count_;
  std::destroy_at(&stream);
}

size_t StreamTable::BucketOf(const Ports& ports) const {
  constexpr uint64_t kMixer = 0x9e3779b97f4a7c15;
  constexpr int kHalf = 32;
  uint64_t mixed = (uint64_t{ports.guest} << kHalf | ports.host) ^ seed_;
  mixed *= kMixer;
  mixed ^= mixed >> kHalf;
  mixed *= kMixer;
  return (mixed >> kHalf) % kBuckets;
}

Stream* StreamTable::Find(const Ports& ports) {
  for (uint16_t at = buckets_[BucketOf(ports)]; at != kNoStream; at = streams_[at].next_hashed) {
    if (streams_[at].ports == ports) {
      return &streams_[at];
    }
  }
  return nullptr;
}

void StreamTable::Name(Stream& stream, const Ports& ports) {
  stream.ports = ports;
  stream.named = true;
  uint16_t& bucket = buckets_[BucketOf(ports)];
  stream.next_hashed = bucket;
  bucket = IndexOf(stream);
}

void StreamTable::Unname(Stream& stream) {
  if (!stream.named) {
    return;
  }
  stream.named = false;
  uint16_t* at = &buckets_[BucketOf(stream.ports)];
  while (*at != IndexOf(stream)) {
    at = &streams_[*at].next_hashed;
  }
  *at = stream.next_hashed;
}

Stream* StreamTable::At(uint16_t index, uint32_t generation) {
  const bool is_there =
      index < most_ && taken_.test(index) && streams_[index].generation == generation;
  return is_there ? &streams_[index] : nullptr;
}

void StreamTable::Queue(Stream& stream) {
  if (stream.queued) {
    return;
  }
  stream.queued = true;
  stream.next_queued = kNoStream;
  if (last_ == kNoStream) {
    first_ = IndexOf(stream);
  } else {
    streams_[last_].next_queued = IndexOf(stream);
  }
  last_ = IndexOf(stream);
  ++queued_;
}

void StreamTable::QueueFirst(Stream& stream) {
  if (stream.queued) {
    return;
  }
  stream.queued = true;
  stream.next_queued = first_;
  first_ = IndexOf(stream);
  if (last_ == kNoStream) {
    last_ = first_;
  }
  ++queued_;
}

Stream* StreamTable::Next() {
  if (first_ == kNoStream) {
    return nullptr;
  }
  Stream& stream = streams_[first_];
  first_ = stream.next_queued;
  if (first_ == kNoStream) {
    last_ = kNoStream;
  }
  stream.queued = false;
  --queued_;
  return &stream;
}

void StreamTable::Unqueue(Stream& stream) {
  if (!stream.queued) {
    return;
  }
  const uint16_t index = IndexOf(stream);
  uint16_t before = kNoStream;
  for (uint16_t at = first_; at != index; at = streams_[at].next_queued) {
    before = at;
  }
  (before == kNoStream ? first_ : streams_[before].next_queued) = stream.next_queued;
  if (last_ == index) {
    last_ = before;
  }
  stream.queued = false;
  --queued_;
}

}  // namespace gantry::vmm::vsock
