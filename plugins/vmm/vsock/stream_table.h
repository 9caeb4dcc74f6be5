// SPDX-License-Identifier: Apache-2.0
//
// All streams of a device: a fixed number of places with a fixed amount of memory, which is
// touched only where a reader does not keep up; and those among them that have something to do, in
// turn. The first 64 places have large windows, for who moves much; the others small ones. So a
// guest that opens all of them, of which nobody reads any, holds 46 MiB at the most.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <span>

#include <gantry/error.h>

#include "plugins/vmm/vsock/stream.h"

namespace gantry::vmm::vsock {

inline constexpr size_t kMaxStreams = 1024;
inline constexpr size_t kLargeWindows = 64;
inline constexpr uint32_t kLargeWindow = 256 * 1024;
inline constexpr uint32_t kSmallWindow = 32 * 1024;

/// Thread: the loop's.
class StreamTable {
 public:
  StreamTable() = default;
  StreamTable(const StreamTable&) = delete;
  StreamTable& operator=(const StreamTable&) = delete;
  ~StreamTable();

  /// Once, before all others. `most`: how many streams there may be, at most kMaxStreams.
  Status Reserve(size_t most);

  /// A free place as a stream of that state, with no name and no socket; null where all are taken.
  Stream* Add(StreamState state);
  /// Closes its socket and frees its place.
  void Remove(Stream& stream);

  Stream* Find(const Ports& ports);
  void Name(Stream& stream, const Ports& ports);
  void Unname(Stream& stream);

  /// Null: the place has been freed since, or is another's.
  Stream* At(uint16_t index, uint32_t generation);

  uint16_t IndexOf(const Stream& stream) const { return static_cast<uint16_t>(&stream - streams_); }

  /// At the end of the turns, unless it waits for its own already.
  void Queue(Stream& stream);
  /// Before all others.
  void QueueFirst(Stream& stream);
  /// Who is next; null: nobody.
  Stream* Next();

  /// How many wait for their turn.
  size_t queued() const { return queued_; }

  size_t size() const { return count_; }

  /// Calls `each(stream)` for all of them, which may remove it.
  template <class Each>
  void ForEach(Each each) {
    for (size_t i = 0; i < most_ && count_ > 0; ++i) {
      if (taken_.test(i)) {
        each(streams_[i]);
      }
    }
  }

 private:
  static constexpr size_t kBuckets = 1024;

  size_t BucketOf(const Ports& ports) const;
  std::span<std::byte> PlaceOf(size_t index) const;
  void Unqueue(Stream& stream);

  /// Of kMaxStreams; those that are taken are alive. Behind them is what they hold.
  Stream* streams_ = nullptr;
  std::byte* places_ = nullptr;
  std::array<uint16_t, kBuckets> buckets_{};
  std::bitset<kMaxStreams> taken_;
  size_t most_ = 0;
  size_t count_ = 0;
  size_t queued_ = 0;
  uint64_t seed_ = 0;
  uint32_t next_generation_ = 1;
  uint16_t first_ = kNoStream;
  uint16_t last_ = kNoStream;
};

}  // namespace gantry::vmm::vsock
