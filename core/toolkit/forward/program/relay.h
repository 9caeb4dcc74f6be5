// SPDX-License-Identifier: Apache-2.0
//
// Bytes between two stream sockets, both ways, each with an end of its own: what one side ends
// by shutdown(2) ends for the other side, and its answer still comes. For a program without a
// C library; only the system calls of this file.
#pragma once

#include <errno.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <gantry/toolkit/freestanding/kernel.h>

namespace gantry::freestanding {

inline constexpr long kBufferBytes = 32768;
/// What a relay has for both ways; no page is larger (arm64 has them of this size).
inline constexpr long kRelayBytes = 2 * kBufferBytes;

inline bool IsForLater(long result) { return result == -EAGAIN || result == -EINTR; }

/// From one socket to the other.
struct Way {
  bool open;
  long begin;
  long end;
  char* buffer;

  bool IsEmpty() const { return begin == end; }
};

class Relay {
 public:
  /// `kRelayBytes`, of any content, at a multiple of that.
  void UseBuffers(char* both) {
    ways_[0].buffer = both;
    ways_[1].buffer = both + kBufferBytes;
  }

  void Begin(int first, int second) {
    ends_[0] = first;
    ends_[1] = second;
    for (Way& way : ways_) {
      way.open = true;
      way.begin = way.end = 0;
    }
  }

  bool IsOpen() const { return ways_[0].open || ways_[1].open; }

  /// Writes two entries: what to wait for. One that is not waited for has no descriptor, as a
  /// peer that has left is always "ready".
  void Poll(pollfd* polled) const {
    for (int i = 0; i < 2; ++i) {
      polled[i] = {-1, 0, 0};
    }
    for (int i = 0; i < 2; ++i) {
      const Way& way = ways_[i];
      if (!way.open) {
        continue;
      }
      // Of whoever is written to it is always of interest whether he has left.
      polled[1 - i].fd = ends_[1 - i];
      if (way.IsEmpty()) {
        polled[i].fd = ends_[i];
        polled[i].events = static_cast<short>(polled[i].events | POLLIN);
      } else {
        polled[1 - i].events = static_cast<short>(polled[1 - i].events | POLLOUT);
      }
    }
  }

  /// With what came of it.
  void Move(const pollfd* polled) {
    for (int i = 0; i < 2; ++i) {
      if (ways_[i].open && (polled[1 - i].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) {
        CutOff(i);
      }
      for (int turn = 0; turn < kTurns && ways_[i].open; ++turn) {
        if (!Step(i)) {
          break;
        }
      }
    }
  }

  void Close() {
    Call(SYS_close, ends_[0]);
    Call(SYS_close, ends_[1]);
    // What was touched is given back.
    Call(SYS_madvise, Address(ways_[0].buffer), kRelayBytes, MADV_DONTNEED);
  }

 private:
  /// So many buffers before others get their turn.
  static constexpr int kTurns = 16;

  /// False: there is nothing more to be done now.
  bool Step(int from) {
    Way& way = ways_[from];
    if (way.IsEmpty()) {
      const long n =
          Call(SYS_recvfrom, ends_[from], Address(way.buffer), kBufferBytes, MSG_DONTWAIT);
      if (IsForLater(n)) {
        return false;
      }
      if (n <= 0) {
        Call(SYS_shutdown, ends_[1 - from], SHUT_WR);
        way.open = false;
        return false;
      }
      way.begin = 0;
      way.end = n;
    }
    const long n = Call(SYS_sendto, ends_[1 - from], Address(way.buffer + way.begin),
                        way.end - way.begin, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n >= 0) {
      way.begin += n;
    } else if (!IsForLater(n)) {
      CutOff(from);
    }
    return n >= 0;
  }

  /// The other side takes no more of it.
  void CutOff(int from) {
    Call(SYS_shutdown, ends_[from], SHUT_RD);
    ways_[from].open = false;
  }

  int ends_[2];
  Way ways_[2];
};

}  // namespace gantry::freestanding
