// SPDX-License-Identifier: Apache-2.0
//
// The operator's API (proto/gantry/operator.proto) over gRPC. What the engine answers is passed on
// to its socket, at which the keeper listens, as gantryctl calls it; what the keeper answers is
// asked on its own. The stream of events is a row of such calls, each for what has happened since
// the one before: so it goes on over an engine's end, and holds nothing for who does not read.
#pragma once

#include <memory>
#include <string>

#include <gantry/error.h>

#include "core/async/co.h"
#include "core/async/loop.h"
#include "core/async/worker_pool.h"
#include "core/door/engine_client.h"
#include "core/door/stream.h"
#include "core/link/keeper_calls.h"
#include "core/rpc/method_table.h"

namespace gantry::door {

/// Thread: loop.
class OperatorCalls {
 public:
  /// `loop` and `pool` outlive it. `run_dir`: where the sockets are.
  OperatorCalls(async::Loop& loop, async::WorkerPool& pool, const std::string& run_dir);
  OperatorCalls(const OperatorCalls&) = delete;
  OperatorCalls& operator=(const OperatorCalls&) = delete;
  ~OperatorCalls() = default;

  /// Puts the methods into `table` and `streams`, which it outlives.
  Status Register(rpc::MethodTable& table, StreamTable& streams);

 private:
  Status RegisterKeeper(rpc::MethodTable& table);
  async::Task<Result<std::string>> Forward(rpc::Call call);
  async::Task<Result<std::string>> Ask(std::string method, std::string payload,
                                       std::chrono::nanoseconds limit);
  async::Task<Status> WatchEvents(std::shared_ptr<Stream> stream);

  async::WorkerPool& pool_;
  const link::KeeperCalls keeper_;
  EngineClient engine_;
};

}  // namespace gantry::door
