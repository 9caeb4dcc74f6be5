// SPDX-License-Identifier: Apache-2.0
//
// Ports that the host forwards: connections to servers on the guest's loopback, each carried by a
// stream of its own. The stream is dialled at once and begins with how connecting went, so that a
// server that takes its time holds up nobody else.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "plugins/vmm/guest/loop.h"
#include "plugins/vmm/guest/platform.h"
#include "plugins/vmm/guest/stream.h"
#include "plugins/vmm/protocol/messages.h"

namespace gantry::vmm::guest {

/// Thread: the loop's. Blocks: never.
class Forwards {
 public:
  /// At once: as many as one host's process carries (gantry/toolkit/forward/protocol.h).
  static constexpr size_t kMost = 128;
  /// For a server whose queue is full; the kernel tries again after 1, 3, 7, 15 and 31 s.
  static constexpr std::chrono::seconds kConnectTime{60};

  Forwards(Loop& loop, Platform& platform) : loop_(loop), platform_(platform) {}

  Forwards(const Forwards&) = delete;
  Forwards& operator=(const Forwards&) = delete;
  ~Forwards();

  /// Errors: kInvalidArgument: it is no port; kResourceExhausted: there are `kMost`; as
  /// `Platform::Dial`. What comes of the connection is said on the stream.
  Status Begin(const protocol::Forward& request);

 private:
  struct One {
    uint16_t port = 0;
    std::unique_ptr<Stream> stream;
    /// Until it is connected.
    UniqueFd server;
    Loop::Watch on_server;
    /// Of the first family, while the second is tried.
    int first_error = 0;
  };

  void Forget();
  void Connect(One& one, bool v6);
  void OnServer(One& one);
  void Connected(One& one);
  void Failed(One& one, int error);
  void Stop(One& one);

  Loop& loop_;
  Platform& platform_;
  std::list<One> all_;
};

}  // namespace gantry::vmm::guest
