// SPDX-License-Identifier: Apache-2.0
//
// gantry-grpc kept running where the configuration names an address, or a collector to which it is
// to export spans. It is a child of the keeper and outlives the engine; the next engine finds it by
// its name. One that is another program than is installed, or was started for another
// configuration, is ended and started anew, and its socket removed where the configuration does not
// name it any more.
//
// The engine has the listening socket besides, taken over from the program where that runs already:
// so who connects while there is none waits.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/process/backoff.h>
#include <gantry/unique_fd.h>

#include "core/async/co.h"
#include "core/async/loop.h"
#include "core/async/worker_pool.h"
#include "core/config/config.h"
#include "core/keeper_client/host_processes.h"

namespace gantry::engine {

/// Thread: loop.
class GrpcProgram {
 public:
  /// All outlive it. `program`: the path of gantry-grpc.
  GrpcProgram(async::Loop& loop, async::WorkerPool& pool, keeper_client::HostProcesses& processes,
              const config::Config& config, std::string run_dir, std::string program);
  GrpcProgram(const GrpcProgram&) = delete;
  GrpcProgram& operator=(const GrpcProgram&) = delete;
  ~GrpcProgram() = default;

  /// To be called once, when the keeper has told what runs.
  void Begin();

 private:
  /// What runs, against what would be started.
  struct Running {
    bool same_program = false;
    bool same_arguments = false;
    /// Where it was told to listen.
    std::string address;
  };

  bool IsWanted() const;
  /// What it runs for, for messages.
  std::string Purpose() const;
  std::vector<std::string> Arguments() const;
  Result<Running> Look(const keeper_client::WatchedProcess& process) const;
  async::Task<void> TakeUp(keeper_client::WatchedProcessPtr process);
  async::Task<void> Start();
  async::Task<Status> Spawn();
  Result<SpawnRequest> MakeRequest();
  void Watch(keeper_client::WatchedProcessPtr process);
  void End();
  /// The socket where the program listened that has ended, where that is another one now.
  async::Task<void> RemoveLeft();

  async::Loop& loop_;
  async::WorkerPool& pool_;
  keeper_client::HostProcesses& processes_;
  const config::Grpc& config_;
  const config::Tracing& tracing_;
  const std::string run_dir_;
  const std::string program_;
  UniqueFd listener_;
  /// A socket of which nobody knows any more when the program has ended.
  std::string left_;
  keeper_client::WatchedProcessPtr process_;
  async::TimePoint started_at_{};
  Backoff pause_;
};

}  // namespace gantry::engine
