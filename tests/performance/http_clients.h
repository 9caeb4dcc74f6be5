// SPDX-License-Identifier: Apache-2.0
//
// Clients of an HTTP server in a container's network: so many connections that stay, each of which
// sends the next request when it has its answer.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "tests/performance/samples.h"

namespace gantry::bench {

/// Thread: one. Owner: of its connections.
class HttpClients {
 public:
  /// Connects to `port` of the loopback in the network namespace of the process `pid`.
  static Result<HttpClients> Connect(pid_t pid, uint16_t port, size_t count);

  /// `requests` in all, for `/`; the time of each in microseconds.
  /// Errors: an answer that is not 200 or has not `text` in it; no answer for 10 s.
  Result<std::vector<double>> Turn(int requests, const std::string& text);

 private:
  struct Connection {
    UniqueFd socket;
    std::string answer = {};
    Clock::time_point sent = {};
  };

  explicit HttpClients(std::vector<UniqueFd> sockets);

  static Status Send(Connection& connection);
  /// Whether it has all of its answer.
  static Result<bool> Receive(Connection& connection, const std::string& text);

  std::vector<Connection> connections_;
  UniqueFd epoll_;
};

}  // namespace gantry::bench
