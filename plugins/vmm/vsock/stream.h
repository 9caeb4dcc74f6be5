// SPDX-License-Identifier: Apache-2.0
//
// One stream between a port of the guest and a UNIX socket of the host.
//
// Both directions end on their own. What the host ends with shutdown(2) is a shutdown packet for
// the guest once all that was sent before has gone; what the guest ends is a shutdown(2) of the
// host's socket once its backlog has gone. An end of both is answered with a reset, which is how a
// guest learns that it may forget the stream; it loses nothing, as a reset comes behind the data.
// Source: Linux 6.12, net/vmw_vsock/virtio_transport_common.c,
// virtio_transport_recv_connected.
#pragma once

#include <cstddef>
#include <cstdint>

#include <gantry/unique_fd.h>

#include "plugins/vmm/vsock/backlog.h"
#include "plugins/vmm/vsock/credit.h"
#include "plugins/vmm/vsock/packet.h"

namespace gantry::vmm::vsock {

/// By which packets name a stream.
struct Ports {
  uint32_t guest = 0;
  uint32_t host = 0;

  bool operator==(const Ports&) const = default;
};

enum class StreamState : uint8_t {
  /// The host has connected and not said yet where to.
  kGreeting,
  /// The guest has asked for a port, whose listener's queue is full.
  kDialing,
  /// The guest is asked, or is to be.
  kRequested,
  kOpen,
  /// The guest is to forget it, or has; what it has sent still goes to the host.
  kEnding,
};

/// Packets that a stream is still to send, beside data and shutdowns, in this order.
inline constexpr uint8_t kOwesReset = 1;
inline constexpr uint8_t kOwesRequest = 2;
inline constexpr uint8_t kOwesResponse = 4;
inline constexpr uint8_t kOwesCreditUpdate = 8;
inline constexpr uint8_t kOwesCreditRequest = 16;

inline constexpr uint16_t kNoStream = 0xffff;

struct Stream {
  StreamState state = StreamState::kGreeting;
  /// Of kOwes....
  uint8_t owes = 0;
  /// In the queue of those that have something to do.
  bool queued = false;
  /// The guest's packets find it.
  bool named = false;
  /// The host's socket may have something, or may take something.
  bool readable = false;
  bool writable = false;
  /// The host sends no more; it takes no more.
  bool host_ended = false;
  bool host_deaf = false;
  /// It has been asked for credit since it was last heard of.
  bool asked = false;
  /// The host's socket has been shut down for writing.
  bool shut = false;
  /// kNoMoreSends and kNoMoreReceives: what the guest has said, and what it has been told.
  uint8_t guest_ended = 0;
  uint8_t guest_told = 0;
  /// So many of the guest's buffers are taken for the next read at most.
  uint8_t burst = 1;
  /// Tells it from earlier ones of the same place.
  uint32_t generation = 0;
  Ports ports;
  UniqueFd host;
  GuestCredit from_guest;
  HostCredit to_guest;
  Backlog backlog;
  /// Milliseconds of the loop's clock: since when the guest has been dialing.
  uint64_t since = 0;
  /// Within the queue, or in the order of greetings or dials; and among those of one hash.
  uint16_t next_queued = kNoStream;
  uint16_t next_hashed = kNoStream;

  bool IsOpen() const { return state == StreamState::kOpen; }
};

}  // namespace gantry::vmm::vsock
