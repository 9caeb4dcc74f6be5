// SPDX-License-Identifier: Apache-2.0
//
// The words of vhost-user that a vsock device needs, as they are on the wire.
// Source: QEMU 10.0, docs/interop/vhost-user.rst.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plugins/vmm/vsock/guest_memory.h"

namespace gantry::vmm::vsock {

enum class Request : uint32_t {
  kGetFeatures = 1,
  kSetFeatures = 2,
  kSetOwner = 3,
  kResetOwner = 4,
  kSetMemoryTable = 5,
  kSetQueueSize = 8,
  kSetQueueAddresses = 9,
  kSetQueueBase = 10,
  kGetQueueBase = 11,
  kSetQueueKick = 12,
  kSetQueueCall = 13,
  kSetQueueError = 14,
  kGetProtocolFeatures = 15,
  kSetProtocolFeatures = 16,
  kGetQueueCount = 17,
  kSetQueueEnable = 18,
  kGetConfig = 24,
  kSetConfig = 25,
  kResetDevice = 34,
};

struct MessageHeader {
  uint32_t request = 0;
  uint32_t flags = 0;
  uint32_t size = 0;
};

inline constexpr uint32_t kVersionMask = 3;
inline constexpr uint32_t kVersion = 1;
inline constexpr uint32_t kReply = 4;
inline constexpr uint32_t kNeedsReply = 8;

/// Of the device. Source: Virtual I/O Device Version 1.3, 6; linux/virtio_ring.h.
inline constexpr uint64_t kEventIndex = 1ULL << 29;
inline constexpr uint64_t kHasProtocolFeatures = 1ULL << 30;
inline constexpr uint64_t kVersion1 = 1ULL << 32;
inline constexpr uint64_t kFeatures = kEventIndex | kHasProtocolFeatures | kVersion1;

/// Of the protocol: more queues than one, answers to all requests, the configuration, a reset.
inline constexpr uint64_t kManyQueues = 1ULL << 0;
inline constexpr uint64_t kAcknowledges = 1ULL << 3;
inline constexpr uint64_t kConfiguration = 1ULL << 9;
inline constexpr uint64_t kResets = 1ULL << 13;
inline constexpr uint64_t kProtocolFeatures =
    kManyQueues | kAcknowledges | kConfiguration | kResets;

/// To the guest, from the guest, events.
inline constexpr uint32_t kQueues = 3;

struct MemoryTableHead {
  uint32_t count = 0;
  uint32_t padding = 0;
};

/// A number of a queue: its size, its base, whether it is on.
struct QueueNumber {
  uint32_t index = 0;
  uint32_t value = 0;
};

struct QueueAddresses {
  uint32_t index = 0;
  uint32_t flags = 0;
  uint64_t descriptors = 0;
  uint64_t used = 0;
  uint64_t available = 0;
  uint64_t log = 0;
};

/// Of what comes with a descriptor: which queue, or that there is none.
inline constexpr uint64_t kQueueMask = 0xff;
inline constexpr uint64_t kNoDescriptor = 0x100;

struct ConfigHead {
  uint32_t offset = 0;
  uint32_t size = 0;
  uint32_t flags = 0;
};

/// All that a vsock device's has: the guest's CID.
inline constexpr size_t kConfigBytes = 8;
inline constexpr size_t kMaxConfig = 256;

/// The longest that is taken: a table of memory, or a configuration.
inline constexpr size_t kMaxPayload =
    sizeof(MemoryTableHead) + GuestMemory::kMaxRegions * sizeof(MemoryRegion) + 64;
static_assert(kMaxPayload >= sizeof(ConfigHead) + kMaxConfig);

}  // namespace gantry::vmm::vsock
