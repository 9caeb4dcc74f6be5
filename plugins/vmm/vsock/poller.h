// SPDX-License-Identifier: Apache-2.0
//
// What the loop waits for: descriptors by epoll, each with what it is. Those of streams and of
// queues are told once for each change ("edge"), so that nobody has to be asked again and nothing
// has to be read to have silence.
// Source: epoll(7); eventfd(2): each write is a change.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <span>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::vmm::vsock {

enum class Source : uint8_t {
  kFrontEndListener,
  kFrontEnd,
  kHostListener,
  kStream,
  /// The guest has put something into its queue for the device, or buffers into the other one.
  kFromGuest,
  kToGuest,
};

struct Event {
  Source source = Source::kStream;
  /// Of a stream.
  uint16_t index = 0;
  uint32_t generation = 0;
  /// EPOLLIN and so on.
  uint32_t ready = 0;
};

/// Thread: the loop's.
class Poller {
 public:
  static constexpr int kMostEvents = 64;

  Status Open();

  /// `what.ready`: what to wait for. Ended by closing the descriptor's last copy, or by `Remove`.
  /// Errors: the errno's.
  Status Add(int fd, const Event& what);
  void Remove(int fd);

  /// Blocks: up to `limit_ms`, negative for ever. The events are valid until the next call.
  std::span<const Event> Wait(int limit_ms);

 private:
  UniqueFd epoll_;
  epoll_event raw_[kMostEvents]{};
  Event events_[kMostEvents]{};
};

}  // namespace gantry::vmm::vsock
