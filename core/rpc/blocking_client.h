// SPDX-License-Identifier: Apache-2.0
//
// A ttrpc client for programs without a loop (gantryctl, tests, benchmarks):
// one call at a time, each with a deadline.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "core/rpc/ttrpc.h"

namespace gantry::rpc {

/// Thread: any, one at a time. Blocks: every call, up to its timeout.
class BlockingClient {
 public:
  /// Errors: as connect(2).
  static Result<BlockingClient> Connect(const std::string& path);

  /// Owner: takes a connected stream socket.
  explicit BlockingClient(UniqueFd socket) : socket_(std::move(socket)) {}

  /// Errors: what the server answered; kDeadlineExceeded, after which a late
  /// answer is skipped; kUnavailable when the connection has ended.
  Result<std::string> Call(const std::string& service, const std::string& method,
                           std::string payload, std::chrono::nanoseconds timeout,
                           Metadata metadata = {});

  /// Sends a request without waiting; the stream is for `Receive`.
  Result<uint32_t> Send(const std::string& service, const std::string& method, std::string payload,
                        std::chrono::nanoseconds timeout, Metadata metadata = {});
  /// The answer on `stream`; answers on other streams are skipped.
  Result<std::string> Receive(uint32_t stream, std::chrono::nanoseconds timeout);

  int fd() const { return socket_.get(); }

 private:
  using Deadline = std::chrono::steady_clock::time_point;

  Status WriteAll(std::string_view bytes, Deadline deadline);
  Status ReadSome(Deadline deadline);

  UniqueFd socket_;
  FrameSplitter frames_;
  uint32_t next_stream_ = 1;
};

}  // namespace gantry::rpc
