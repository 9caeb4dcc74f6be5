// SPDX-License-Identifier: Apache-2.0
//
// Who may connect to the gRPC server: root, and who runs it. Accepted here, and not by gRPC, since
// gRPC does not tell whose a connection is; and so that the socket can be another program's before
// and after: what connects meanwhile waits in its queue.
#pragma once

#include <functional>
#include <unordered_map>

#include <gantry/unique_fd.h>

#include "core/async/loop.h"

namespace gantry::door {

/// Thread: loop.
class Listener {
 public:
  /// Past it the next one waits in the socket's queue until another one has closed.
  static constexpr size_t kMaxConnections = 256;

  /// Owner: takes a listening socket. `take` gets each connection. Both outlive it.
  Listener(async::Loop& loop, UniqueFd socket, std::function<void(UniqueFd)> take);
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener();

  /// From now on nobody is let in.
  void Stop();

 private:
  struct Open {
    /// The connection's, beside that which was given away: tells when it has closed.
    UniqueFd socket;
    async::WatchId watch;
  };

  void Accept();
  void Enter(UniqueFd connection);
  void Closed(int fd);

  async::Loop& loop_;
  UniqueFd socket_;
  std::function<void(UniqueFd)> take_;
  async::WatchId watch_;
  async::TimerId pause_;
  std::unordered_map<int, Open> open_;
};

}  // namespace gantry::door
