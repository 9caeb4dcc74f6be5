// SPDX-License-Identifier: Apache-2.0
//
// A ttrpc client on the loop: one connection, many calls at a time. When the
// connection ends all calls fail with kUnavailable; making a new one is the
// caller's job.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "core/async/co.h"
#include "core/async/loop.h"
#include "core/rpc/ttrpc.h"

namespace gantry::rpc {

/// Thread: loop. Must be destroyed before the loop.
class Client {
 public:
  /// What may wait to be written before calls are refused with kResourceExhausted.
  static constexpr size_t kMaxUnsentBytes = size_t{16} << 20;

  /// Connects to a UNIX socket. Errors: as connect(2), kDeadlineExceeded.
  static async::Task<Result<std::unique_ptr<Client>>> Connect(async::Loop& loop, std::string path,
                                                              std::chrono::nanoseconds timeout);
  /// Owner: takes a connected stream socket, which is made non-blocking.
  Client(async::Loop& loop, UniqueFd socket);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  /// Calls that still wait fail with kUnavailable.
  ~Client();

  /// Calls `service/method`. The timeout is sent along and enforced here; 0: none.
  /// Errors: what the server answered; kDeadlineExceeded; kUnavailable when the
  /// connection is, or goes, down; kResourceExhausted for a request above 4 MiB.
  async::Task<Result<std::string>> Call(std::string service, std::string method,
                                        std::string payload, std::chrono::nanoseconds timeout,
                                        Metadata metadata = {});

  bool closed() const;
  /// Calls `then` once, from the loop, when the connection has ended; not when
  /// the client is destroyed.
  void OnClose(std::move_only_function<void()> then);

 private:
  struct State;

  static async::Task<Result<std::string>> RunCall(std::shared_ptr<State> state, Request request);

  std::shared_ptr<State> state_;
};

}  // namespace gantry::rpc
