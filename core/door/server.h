// SPDX-License-Identifier: Apache-2.0
//
// gRPC in front of a method table: a generic service, which takes any method's bytes and has a
// dispatcher run it, so that what is served over ttrpc is served here by the same handlers.
//
// gRPC's threads only carry bytes to the loop and back. A call that its client cancels, or whose
// deadline passes, is told to its handler (rpc::Abandonment) and answered at once. Calls that are
// streams have a table of their own. Health (grpc.health.v1) is gRPC's own, of the whole and of
// each service.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "core/async/loop.h"
#include "core/door/stream.h"
#include "core/rpc/method_table.h"

namespace gantry::door {

struct ServerLimits {
  /// Calls that are not answered yet, of all clients; most of them are Waits.
  size_t calls = 16384;
  /// Of one connection: gRPC makes a client's further calls wait there.
  int calls_per_connection = 8192;
  /// Calls with any number of messages, of all clients.
  size_t streams = 256;
};

/// The services that have a method in one of the two, sorted.
std::vector<std::string> ServicesOf(const rpc::MethodTable& table, const StreamTable& streams);

/// Thread: loop.
class Server {
 public:
  /// `loop` and the tables outlive it. Errors: kInternal: gRPC does not start.
  static Result<std::unique_ptr<Server>> Start(async::Loop& loop, const rpc::MethodTable& table,
                                               const StreamTable& streams,
                                               const ServerLimits& limits);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  /// Calls that are not answered fail with UNAVAILABLE. Blocks: until gRPC's threads have let go.
  ~Server();

  /// Serves who is at the other end. Owner: takes the connected stream socket.
  void Take(UniqueFd connection);

  /// A call has something to do, and is not one that only waits.
  bool IsBusy() const;

 private:
  class Core;

  explicit Server(std::unique_ptr<Core> core);

  std::unique_ptr<Core> core_;
};

}  // namespace gantry::door
