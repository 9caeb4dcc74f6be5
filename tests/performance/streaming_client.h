// SPDX-License-Identifier: Apache-2.0
//
// A client of containerd's Streaming service, as its CRI plugin is one for the outputs of
// containers: a connection for one stream, and a window that is kept open.
#pragma once

#include <cstdint>
#include <string>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "core/rpc/ttrpc.h"

namespace gantry::bench {

/// Thread: one. Blocks: each call until there is something.
class StreamingClient {
 public:
  /// Opens the stream `id` of the sandbox behind `socket`.
  static Result<StreamingClient> Open(const std::string& socket, const std::string& id);

  /// The next bytes. Empty: their end, which has been answered. Errors: kInternal for anything
  /// else than data; kUnavailable: the connection has ended; kDeadlineExceeded: nothing comes.
  Result<std::string> Read();

 private:
  explicit StreamingClient(UniqueFd socket) : socket_(std::move(socket)) {}

  Status Send(rpc::FrameType type, uint8_t flags, const std::string& data);
  Result<rpc::Frame> Receive();
  Status KeepOpen();

  UniqueFd socket_;
  rpc::FrameSplitter in_;
  int64_t window_ = 0;
};

}  // namespace gantry::bench
