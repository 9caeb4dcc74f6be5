// SPDX-License-Identifier: Apache-2.0
//
// The control server of one sentry. Short calls share a few connections that are kept; a call
// that waits for a workload gets one for itself.
//
// When its root container has ended, the sentry answers what is under way, takes no new
// connection, and waits up to 15 s for the idle ones to be closed: so `Hangup` belongs to
// that end. Source: runsc 20240729 and 2026-09, pkg/control/server/server.go.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <gantry/toolkit/sync/mutex.h>

#include "plugins/gvisor/urpc/connection.h"

namespace gantry::urpc {

/// Thread: any.
class Client {
 public:
  /// Of idle connections; each call at once more than that has one for its time.
  static constexpr size_t kMaxIdle = 2;

  /// Connects when it is first asked. `path`: of the control socket.
  explicit Client(std::string path) : path_(std::move(path)) {}

  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() = default;

  /// One call, done once: nothing is repeated that the sentry may have heard.
  /// Errors: all. Blocks: up to `deadline`.
  Outcome<Answer> Call(const Request& request, Deadline deadline);

  /// The request is sent, its answer comes on the connection. Errors: as `Send`.
  Outcome<Connection> Begin(const Request& request, Deadline deadline);

  /// Closes the idle connections, and those under way when they are done; none is kept from
  /// now on. Calls are possible as long as the sentry takes them.
  void Hangup();

  const std::string& path() const { return path_; }

 private:
  Outcome<Connection> TakeIdle(Deadline deadline);
  void Keep(Connection connection);

  const std::string path_;
  Mutex mutex_;
  std::vector<Connection> idle_ GANTRY_GUARDED_BY(mutex_);
  bool hung_up_ GANTRY_GUARDED_BY(mutex_) = false;
};

}  // namespace gantry::urpc
