// SPDX-License-Identifier: Apache-2.0
//
// Bytes between two stream sockets, both ways, each with an end of its own: what one side ends
// by shutdown(2) ends for the other side, and its answer still comes. For a program without a
// C library; only the system calls of this file.
//
// The second one may be of a transport whose two directions end together (a virtual machine's
// hybrid vsock). Then its bytes are in frames, four bytes of length, the highest first, and so many
// bytes; the empty frame is the end of a direction. Where it ends without, it was cut off, and the
// first one is reset.
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

/// Whoever has the other end learns that it was no end in order.
inline void ResetWhenClosed(int socket) {
  const linger at_once = {1, 0};
  Call(SYS_setsockopt, socket, SOL_SOCKET, SO_LINGER, Address(&at_once), sizeof(at_once));
}

/// Of a frame, before its bytes.
inline constexpr long kFrameHeaderBytes = 4;

inline void WriteLength(char* header, unsigned long length) {
  for (int i = 0; i < kFrameHeaderBytes; ++i) {
    header[i] = static_cast<char>(length >> 8 * (kFrameHeaderBytes - 1 - i));
  }
}

inline long ReadLength(const char* header) {
  long length = 0;
  for (int i = 0; i < kFrameHeaderBytes; ++i) {
    length = length << 8 | static_cast<unsigned char>(header[i]);
  }
  return length;
}

/// From one socket to the other.
struct Way {
  bool open;
  /// What is in the buffer is the last of it.
  bool last;
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

  /// `framed`: the second one's bytes are in frames.
  void Begin(int first, int second, bool framed) {
    ends_[0] = first;
    ends_[1] = second;
    framed_ = framed;
    cut_ = false;
    heard_ = 0;
    left_ = 0;
    for (Way& way : ways_) {
      way.open = true;
      way.last = false;
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
    if (cut_) {
      ResetWhenClosed(ends_[0]);
    }
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
    if (way.IsEmpty() && !(framed_ && from == 1 ? FillFromFrames() : Fill(from))) {
      return false;
    }
    const long n = Call(SYS_sendto, ends_[1 - from], Address(way.buffer + way.begin),
                        way.end - way.begin, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n >= 0) {
      way.begin += n;
      way.open = !way.last || !way.IsEmpty();
    } else if (!IsForLater(n)) {
      CutOff(from);
    }
    return n >= 0;
  }

  long Receive(int from, char* to, long most) const {
    return Call(SYS_recvfrom, ends_[from], Address(to), most, MSG_DONTWAIT);
  }

  /// False: nothing has come, or the end, which the other side has been told.
  bool Fill(int from) {
    Way& way = ways_[from];
    const long head = framed_ ? kFrameHeaderBytes : 0;
    const long n = Receive(from, way.buffer + head, kBufferBytes - head);
    if (IsForLater(n)) {
      return false;
    }
    if (n <= 0 && !framed_) {
      EndOf(from);
      return false;
    }
    way.begin = 0;
    way.end = head + (n > 0 ? n : 0);
    way.last = n <= 0;
    if (framed_) {
      WriteLength(way.buffer, static_cast<unsigned long>(way.end - head));
    }
    return true;
  }

  /// The same of what is in frames, of which nothing but the bytes is kept.
  bool FillFromFrames() {
    Way& way = ways_[1];
    if (left_ == 0) {
      const long n = Receive(1, header_ + heard_, kFrameHeaderBytes - heard_);
      if (IsForLater(n)) {
        return false;
      }
      if (n <= 0) {
        CutShort();
        return false;
      }
      heard_ += n;
      if (heard_ < kFrameHeaderBytes) {
        return false;
      }
      heard_ = 0;
      left_ = ReadLength(header_);
      if (left_ == 0) {
        EndOf(1);
        return false;
      }
    }
    const long n = Receive(1, way.buffer, left_ < kBufferBytes ? left_ : kBufferBytes);
    if (IsForLater(n)) {
      return false;
    }
    if (n <= 0) {
      CutShort();
      return false;
    }
    left_ -= n;
    way.begin = 0;
    way.end = n;
    return true;
  }

  void EndOf(int from) {
    Call(SYS_shutdown, ends_[1 - from], SHUT_WR);
    ways_[from].open = false;
  }

  /// Frames have ended without an end.
  void CutShort() {
    cut_ = true;
    ways_[0].open = ways_[1].open = false;
  }

  /// The other side takes no more of it.
  void CutOff(int from) {
    Call(SYS_shutdown, ends_[from], SHUT_RD);
    ways_[from].open = false;
  }

  int ends_[2];
  Way ways_[2];
  bool framed_;
  bool cut_;
  /// Of a frame that comes: so much of its header is there, and so many of its bytes are not.
  char header_[kFrameHeaderBytes];
  long heard_;
  long left_;
};

}  // namespace gantry::freestanding
