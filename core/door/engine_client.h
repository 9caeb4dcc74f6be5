// SPDX-License-Identifier: Apache-2.0
//
// Calls of the engine at the socket of the operator's API, at which the keeper listens: so a call
// goes on over an engine's end.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <gantry/error.h>

#include "core/async/co.h"
#include "core/async/loop.h"
#include "core/rpc/client.h"

namespace gantry::door {

/// Thread: loop.
class EngineClient {
 public:
  /// `loop` outlives it. `run_dir`: where the sockets are.
  EngineClient(async::Loop& loop, const std::string& run_dir);
  EngineClient(const EngineClient&) = delete;
  EngineClient& operator=(const EngineClient&) = delete;
  ~EngineClient() = default;

  /// Connects where it is not connected. Errors: kUnavailable: nobody listens, or the connection
  /// has ended; what is answered; kDeadlineExceeded after `limit`.
  async::Task<Result<std::string>> Ask(std::string service, std::string method, std::string payload,
                                       std::chrono::nanoseconds limit);

 private:
  async::Loop& loop_;
  const std::string socket_;
  std::shared_ptr<rpc::Client> client_;
};

}  // namespace gantry::door
