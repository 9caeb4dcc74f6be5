// SPDX-License-Identifier: Apache-2.0
//
// The operator's API (proto/gantry/operator.proto) over gRPC: each call is passed on to the
// engine's socket, at which the keeper listens, as gantryctl calls it.
#pragma once

#include <memory>
#include <string>

#include <gantry/error.h>

#include "core/async/co.h"
#include "core/async/loop.h"
#include "core/rpc/client.h"
#include "core/rpc/method_table.h"

namespace gantry::door {

/// Thread: loop.
class OperatorCalls {
 public:
  /// `loop` outlives it. `run_dir`: where the socket is.
  OperatorCalls(async::Loop& loop, const std::string& run_dir);
  OperatorCalls(const OperatorCalls&) = delete;
  OperatorCalls& operator=(const OperatorCalls&) = delete;
  ~OperatorCalls() = default;

  /// Puts the methods into `table`, which it outlives.
  Status Register(rpc::MethodTable& table);

 private:
  async::Task<Result<std::string>> Forward(rpc::Call call);

  async::Loop& loop_;
  const std::string socket_;
  std::shared_ptr<rpc::Client> client_;
};

}  // namespace gantry::door
