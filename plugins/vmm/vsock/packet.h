// SPDX-License-Identifier: Apache-2.0
//
// What a packet of a virtio socket begins with.
// Source: Virtual I/O Device Version 1.3, 5.10.6, "Device Operation".
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace gantry::vmm::vsock {

/// The host, whom a guest dials. Source: vsock(7), VMADDR_CID_HOST.
inline constexpr uint64_t kHostCid = 2;

enum class PacketType : uint16_t {
  kStream = 1,
};

enum class PacketOp : uint16_t {
  kRequest = 1,
  kResponse = 2,
  kReset = 3,
  kShutdown = 4,
  kData = 5,
  kCreditUpdate = 6,
  kCreditRequest = 7,
};

/// Of a shutdown: what its sender does no more. As shutdown(2) counts them, plus one.
inline constexpr uint32_t kNoMoreReceives = 1;
inline constexpr uint32_t kNoMoreSends = 2;
inline constexpr uint32_t kNeither = kNoMoreReceives | kNoMoreSends;

struct [[gnu::packed]] PacketHeader {
  uint64_t source_cid = 0;
  uint64_t target_cid = 0;
  uint32_t source_port = 0;
  uint32_t target_port = 0;
  /// Bytes that follow.
  uint32_t length = 0;
  uint16_t type = 0;
  uint16_t op = 0;
  uint32_t flags = 0;
  /// How many bytes of this stream its sender takes, and how many have left its buffer since the
  /// stream began, modulo 2^32.
  uint32_t window = 0;
  uint32_t forwarded = 0;
};

inline constexpr size_t kHeaderBytes = 44;
static_assert(sizeof(PacketHeader) == kHeaderBytes);
static_assert(std::endian::native == std::endian::little, "the wire is little-endian");

}  // namespace gantry::vmm::vsock
