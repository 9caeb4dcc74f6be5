// SPDX-License-Identifier: Apache-2.0
//
// The socket on which an OCI runtime hands over the terminal it has made.
//
// The socket lies in the bundle and is named relative to it, because an
// absolute path there is easily longer than the 107 bytes of a socket's
// address; the runtime runs with the bundle as its directory. The runtime
// connects, sends one descriptor and waits for nothing, so it is enough to
// look after it has ended: what it sent is in the socket's queue. There it stays: the
// socket lies in the descriptor store, so that an engine which dies with the terminal in
// its hands has lost nothing.
#pragma once

#include <string>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::runc {

/// Removes its socket when destroyed. Thread: any, one at a time.
class ConsoleSocket {
 public:
  /// `name`: a file name of at most 80 characters in `bundle`; an old socket
  /// of that name is replaced.
  static Result<ConsoleSocket> Listen(const std::string& bundle, const std::string& name);

  ConsoleSocket(const ConsoleSocket&) = delete;
  ConsoleSocket& operator=(const ConsoleSocket&) = delete;
  ConsoleSocket(ConsoleSocket&&) = default;
  ConsoleSocket& operator=(ConsoleSocket&&) = delete;
  ~ConsoleSocket();

  /// For `--console-socket`, relative to the bundle.
  const std::string& name() const { return name_; }

  const UniqueFd& listener() const { return listener_; }

 private:
  ConsoleSocket(UniqueFd directory, UniqueFd listener, std::string name)
      : directory_(std::move(directory)), listener_(std::move(listener)), name_(std::move(name)) {}

  UniqueFd directory_;
  UniqueFd listener_;
  std::string name_;
};

/// The terminal's master. To be called when the runtime has ended. `socket`: the one that
/// listens, or the connection that waited on it; of the latter it is had again and again.
/// Errors: kInternal: it sent none, or something else. Blocks: never.
Result<UniqueFd> ReceiveTerminal(const UniqueFd& socket);

}  // namespace gantry::runc
