// SPDX-License-Identifier: Apache-2.0
//
// The engine put together: link, loop, workers, services, and the order in
// which they come up. Whatever the keeper says before all is ready is kept and
// handled then, in the order in which it was said.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/cgroup/cgroup.h>
#include <gantry/unique_fd.h>

#include "core/async/idle_trim.h"
#include "core/async/loop.h"
#include "core/async/worker_pool.h"
#include "core/backend/backends.h"
#include "core/backend/context.h"
#include "core/config/config.h"
#include "core/engine/command_line.h"
#include "core/events/publisher.h"
#include "core/io/relay.h"
#include "core/keeper_client/host_processes.h"
#include "core/keeper_client/keeper_link.h"
#include "core/rpc/dispatcher.h"
#include "core/rpc/method_table.h"
#include "core/task/parts.h"
#include "core/trace/recorder.h"

namespace gantry::metrics {
class Server;
}

namespace gantry::engine {

class EventFeed;
class GrpcProgram;
class MetricsSource;
class SpanFeed;
class Tasks;

/// Thread: the main thread.
class Engine final : private keeper_client::KeeperObserver {
 public:
  /// Owner: takes the link's socket. `config_error`: why the configuration is
  /// not the operator's; nothing new is created then, what runs goes on.
  Engine(CommandLine line, config::Config config, std::string config_error,
         cgroup::CgroupHierarchy cgroups, UniqueFd link);
  ~Engine() override;

  /// Runs until the keeper is gone or a signal ends it. Returns the exit code.
  int Run();

 private:
  /// The steps that follow it, in their order.
  async::Task<void> ComeUp();
  trace::OpenStep BeginRecording();
  /// Of what an earlier engine left below `MountScratch`.
  async::Task<void> ClearMounts();
  /// The queue of events, those of late, and who publishes them: all of it before `MakeTasks`.
  async::Task<Status> OpenEvents();
  void MakeTasks();
  Status Register();
  void RegisterServices();
  /// Runs what waits for `WhenUp`.
  void LetThrough();
  void StartGrpc();
  void ServeMetrics();
  std::unique_ptr<rpc::Dispatcher> MakeDispatcher();
  /// Where it mounts what it does not keep mounted. In the run directory, and not in a bundle:
  /// who removes a bundle with a mount in it removes what is mounted.
  std::string MountScratch() const;
  async::Task<Result<std::unique_ptr<events::Outbox>>> OpenOutbox();
  async::Task<Result<std::unique_ptr<EventFeed>>> OpenFeed();
  /// What the keeper holds under that name; made where it holds none.
  async::Task<Result<UniqueFd>> TakeMemfd(std::string name);
  /// Has the feed told what the keeper counts; and of this engine, when it has come `up`.
  async::Task<void> TellKeeper(bool up);
  /// Thread: workers.
  Result<task::BackendRef> FindBackend(std::string name);
  /// Runs `function` when everything is up: now, or later in its turn.
  void WhenUp(std::move_only_function<void()> function);
  void WatchSignals();
  /// Ends as soon as the calls that are under way are answered, at `until` at the latest.
  /// What has no answer then, the keeper gives to the next engine.
  void Retire(async::TimePoint until);
  /// Of one that is to take another's place. Blocks: for files and plugins.
  Status CheckStandby();

  void OnInstanceAdded(link::InstanceAdded instance) override;
  void OnInstanceRemoved(link::InstanceRemoved removed) override;
  void OnExit(const link::Exit& exit) override;
  void OnNamedSpawn(const link::NamedSpawn& spawn) override;
  void OnEndedNames(const link::EndedNames& ended) override;
  void OnWatched(const link::Watched& watched) override;
  void OnStoredNames(std::vector<std::string> names) override;
  void OnSnapshotEnd() override;
  void OnRequest(link::Request request) override;
  void OnConnectionClosed(uint64_t connection) override;
  void OnDeleteCall(const link::DeleteCall& call) override;
  void OnKeeperLost(Error error) override;

  void OnPinged() override { trim_.Tick(); }

  /// Memory that nothing needs any more.
  void GiveBack();

  const CommandLine line_;
  const config::Config config_;
  const std::string config_error_;
  const cgroup::CgroupHierarchy cgroups_;
  /// Until it has said Hello. Valid with `line_.standby` only.
  UniqueFd early_link_;
  async::Loop loop_;
  async::IdleTrim trim_{loop_, {.release = [this] { GiveBack(); }}};
  UniqueFd signals_;
  async::WatchId signal_watch_{};
  async::WorkerPool pool_;
  keeper_client::KeeperLink link_;
  keeper_client::HostProcesses processes_;
  io::Relay relay_;
  backend::Counters counters_;
  /// Null where none are exported.
  const std::unique_ptr<trace::Spans> spans_;
  trace::Recorder recorder_;
  backend::Backends backends_;
  rpc::MethodTable table_;
  std::unique_ptr<EventFeed> feed_;
  std::unique_ptr<SpanFeed> span_feed_;
  std::unique_ptr<events::Publishers> publishers_;
  std::unique_ptr<Tasks> tasks_;
  std::unique_ptr<GrpcProgram> grpc_;
  std::unique_ptr<rpc::Dispatcher> dispatcher_;
  uint64_t slow_turns_ = 0;
  /// Null where none are served.
  std::unique_ptr<MetricsSource> metrics_source_;
  std::unique_ptr<metrics::Server> metrics_;
  std::vector<std::string> stored_;
  bool up_ = false;
  std::deque<std::move_only_function<void()>> waiting_;
  int exit_code_ = 0;
};

}  // namespace gantry::engine
