// SPDX-License-Identifier: Apache-2.0
//
// What the engine and gantry-forward on the host say to each other. It is the same from release
// to release: a process that has begun goes on when the engine is upgraded. A message is one
// packet of a SOCK_SEQPACKET socket; numbers are the machine's.
#pragma once

#include <stdint.h>

namespace gantry::forward {

/// The number of gantry-forward's end. When nobody holds the other one any more, it ends.
inline constexpr int kControlNumber = 3;
/// At once; more are reset.
inline constexpr int kMaxConnections = 128;

/// From the engine, with two descriptors: the client's TCP socket, and the other end of what
/// the process in the sandbox has as its descriptor 0.
struct Handover {
  uint16_t port;
  /// Not 0: what the sandbox has says and hears frames: four bytes of length, the highest first,
  /// and so many bytes; the empty one is a direction's end. Of an engine that does not say it, 0.
  uint16_t framed;
};

/// As a port in `Report`: gantry-forward could not give up its rights, with that errno, and has
/// ended instead of serving anybody.
inline constexpr uint16_t kNoPort = 0;

/// To the engine: the connection could not be made, and its client's was reset.
struct Report {
  uint16_t port;
  /// The errno of the process in the sandbox; ECONNABORTED: it ended without a word; EUSERS:
  /// there are too many.
  uint16_t error;
};

}  // namespace gantry::forward
