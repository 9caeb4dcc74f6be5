// SPDX-License-Identifier: Apache-2.0
//
// The services of an engine that is put together as gantryd's is, between a
// fake keeper and a fake backend. Calls go through the dispatcher, as requests
// of containerd do; events are read from the outbox's journal.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <gantry/toolkit/cgroup/cgroup.h>

#include "core/async/loop.h"
#include "core/async/worker_pool.h"
#include "core/backend/context.h"
#include "core/config/config.h"
#include "core/engine/tasks.h"
#include "core/events/event.h"
#include "core/events/publisher.h"
#include "core/io/relay.h"
#include "core/keeper_client/host_processes.h"
#include "core/keeper_client/keeper_link.h"
#include "core/os/fs.h"
#include "core/rpc/dispatcher.h"
#include "core/rpc/method_table.h"
#include "core/trace/recorder.h"
#include "proto/containerd/task/task.pb.h"
#include "tests/unit/async/loop_driver.h"
#include "tests/unit/task/fake_backend.h"
#include "tests/unit/task/fake_keeper.h"

namespace gantry::task {

namespace pb = containerd::task;

/// One life of gantryd.
class TestEngine final : private keeper_client::KeeperObserver {
 public:
  struct Surroundings {
    config::Config config;
    std::shared_ptr<test::FakeBackend> backend;
    /// Why the backend cannot be used.
    std::string backend_error;
    std::string config_error;
    /// As Parts has it, where nothing hangs.
    std::chrono::milliseconds overdue_after = std::chrono::seconds(3);
    cgroup::CgroupHierarchy cgroups{};
  };

  TestEngine(Surroundings around, test::FakeKeeper& keeper, UniqueFd journal);

  /// The snapshot has been taken in.
  bool up() const { return up_; }

  void Dispatch(rpc::IncomingRequest request) { dispatcher_.Dispatch(std::move(request)); }

  void ConnectionClosed(uint64_t connection) { dispatcher_.ConnectionClosed(connection); }

  size_t running() const { return dispatcher_.counters().running; }

  /// Before it is destroyed.
  void Retire() { test::Await(loop_, publishers_.Stop()); }

  async::Loop& loop() { return loop_; }

  async::WorkerPool& pool() { return pool_; }

  const engine::Tasks& tasks() const { return tasks_; }

  /// Not open: it records nothing.
  trace::Recorder& recorder() { return recorder_; }

  /// It copies nothing any more, as after kill -9.
  void StopRelay() { relay_.reset(); }

  std::map<uint32_t, Result<std::string>> answers;

 private:
  void OnInstanceAdded(link::InstanceAdded instance) override {
    tasks_.InstanceAdded(std::move(instance));
  }

  void OnInstanceRemoved(link::InstanceRemoved removed) override {
    tasks_.InstanceRemoved(removed);
  }

  void OnExit(const link::Exit& exit) override { processes_.OnExit(exit); }

  void OnNamedSpawn(const link::NamedSpawn& spawn) override { processes_.OnNamedSpawn(spawn); }

  void OnEndedNames(const link::EndedNames& ended) override { processes_.OnEndedNames(ended); }

  void OnWatched(const link::Watched& watched) override { processes_.OnWatched(watched); }

  void OnStoredNames(std::vector<std::string> names) override { stored_ = std::move(names); }

  void OnSnapshotEnd() override {
    processes_.OnSnapshotEnd();
    tasks_.SnapshotEnd(std::move(stored_));
    up_ = true;
  }

  void OnRequest(link::Request) override {}

  void OnConnectionClosed(uint64_t) override {}

  void OnDeleteCall(const link::DeleteCall& call) override { tasks_.DeleteCall(call); }

  void OnKeeperLost(Error) override {}

  Parts MakeParts();

  const Surroundings around_;
  async::Loop loop_;
  async::WorkerPool pool_{loop_, 8, 256};
  keeper_client::KeeperLink link_;
  keeper_client::HostProcesses processes_;
  std::optional<io::Relay> relay_{std::in_place};
  backend::Counters counters_;
  trace::Recorder recorder_;
  events::Publishers publishers_;
  engine::Tasks tasks_;
  rpc::MethodTable table_;
  rpc::Dispatcher dispatcher_;
  std::vector<std::string> stored_;
  bool up_ = false;
};

/// What containerd would be told, as text: "create c1", "exit c1 137",
/// "exit c1/e1 0", "exec-started c1/e1".
std::vector<std::string> ReadEvents(int journal);

class TaskTest : public testing::Test {
 protected:
  TaskTest();
  ~TaskTest() override;

  /// A bundle with a config.json and its announced instance.
  std::string Announce(const std::string& id, const std::string& group = "");
  /// A bundle only. `changes` go into config.json.
  std::string MakeBundle(const std::string& id, const std::string& annotations = "{}",
                         bool private_pids = true);

  /// The engine is gone, as by kill -9: nothing of it moves any more. A new one
  /// has come up.
  void RestartEngine();

  // Calls. On the socket of `group`, or else of the container.

  /// Sends a request; the number is for `Answered` and `Take`.
  uint32_t Send(const std::string& method, const google::protobuf::MessageLite& request,
                const std::string& socket, bool replay = false);

  bool Answered(uint32_t stream) const { return engine_->answers.contains(stream); }

  /// The same to the Sandbox service.
  uint32_t SendSandbox(const std::string& method, const google::protobuf::MessageLite& request,
                       const std::string& socket, bool replay = false);

  /// Waits for the answer.
  Result<std::string> Take(uint32_t stream);

  template <class Response>
  Result<Response> TakeAs(uint32_t stream) {
    GANTRY_TRY(const std::string bytes, Take(stream));
    Response response;
    EXPECT_TRUE(response.ParseFromString(bytes));
    return response;
  }

  template <class Response>
  Result<Response> Ask(const std::string& method, const google::protobuf::MessageLite& request,
                       const std::string& socket, bool replay = false) {
    return TakeAs<Response>(Send(method, request, socket, replay));
  }

  // Short forms; `name` is "c1", or "c1/e1" for an exec.
  pb::CreateTaskRequest CreateRequest(const std::string& id);
  Result<pb::CreateTaskResponse> Create(const std::string& id, const std::string& socket = "");
  Result<pb::StartResponse> Start(const std::string& name, bool replay = false);
  Result<wire::Empty> Exec(const std::string& name, bool replay = false);
  Result<pb::DeleteResponse> Delete(const std::string& name, bool replay = false);
  Result<pb::StateResponse> State(const std::string& name);
  Result<wire::Empty> Kill(const std::string& name, uint32_t signal = 9, bool all = false);
  Result<pb::PidsResponse> Pids(const std::string& id);
  uint32_t SendStart(const std::string& name);
  uint32_t SendWait(const std::string& name);
  uint32_t SendDelete(const std::string& name);
  /// Announced, created and started.
  void Run(const std::string& id, const std::string& group = "");
  /// A registered and started exec.
  void RunExec(const std::string& name);
  /// Ends it and waits until that is known.
  void End(const std::string& name, uint32_t status);

  bool Until(const std::function<bool()>& happened) {
    return test::RunUntil(engine_->loop(), happened);
  }

  /// Does what the loop can do at once.
  void Turn() { test::RunAllReady(engine_->loop()); }

  /// Lets everything happen that needs nobody else. So many calls into backends do not return.
  void Settle(size_t held = 0);

  std::vector<std::string> Events() { return ReadEvents(journal_.get()); }

  /// The record on disk; a default one when there is none.
  store::Record RecordOf(const std::string& id);

  os::TempDir dir_;
  /// What the next engine gets.
  TestEngine::Surroundings around_;
  test::FakeBackend& backend_;
  test::FakeKeeper keeper_;
  UniqueFd journal_;
  std::unique_ptr<TestEngine> engine_;
  /// Of all calls from now on; 0: none.
  std::chrono::nanoseconds callers_timeout_{0};
  /// The same.
  rpc::Metadata callers_metadata_;

 private:
  void StartEngine();
  uint32_t SendTo(const std::string& service, const std::string& method,
                  const google::protobuf::MessageLite& request, const std::string& socket,
                  bool replay);

  uint32_t next_stream_ = 1;
  std::map<std::string, std::string> socket_of_;
};

/// The code of a failed result; kOk for others.
template <class T>
Code CodeOf(const Result<T>& result) {
  return result ? Code::kOk : result.error().code;
}

template <class T>
std::string MessageOf(const Result<T>& result) {
  return result ? "" : result.error().message;
}

}  // namespace gantry::task
