// SPDX-License-Identifier: Apache-2.0
//
// State, Pids, Stats, Connect, Shutdown.
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/protowire.h>

#include "proto/containerd/runc.pb.h"
#include "tests/unit/task/task_test.h"

namespace gantry::task {
namespace {

/// `PidsStat.current` of `io.containerd.cgroups.v2.Metrics`.
uint64_t PidsOf(const std::string& metrics) {
  ProtoReader all(metrics);
  while (all.Next()) {
    const std::string part(all.field() == 1 ? all.text() : "");
    ProtoReader pids(part);
    while (pids.Next()) {
      if (pids.field() == 1) {
        return pids.number();
      }
    }
  }
  return 0;
}

class TaskQuery : public TaskTest {
 protected:
  Result<pb::ConnectResponse> Connect(const std::string& id) {
    pb::ConnectRequest request;
    request.set_id(id);
    return Ask<pb::ConnectResponse>("Connect", request, id);
  }

  Result<pb::StatsResponse> Stats(const std::string& id) {
    pb::StatsRequest request;
    request.set_id(id);
    return Ask<pb::StatsResponse>("Stats", request, id);
  }
};

TEST_F(TaskQuery, StateIsGosZeroTimeUntilTheEnd) {
  Run("c1");
  const auto state = State("c1");
  ASSERT_TRUE(state);
  EXPECT_EQ(state->exited_at().seconds(), -62135596800);
  EXPECT_EQ(state->exit_status(), 0U);
  EXPECT_EQ(state->exec_id(), "");
}

TEST_F(TaskQuery, StateDoesNotWaitForOtherCalls) {
  Announce("c1");
  ASSERT_TRUE(Create("c1"));
  backend_.Hold("start c1");
  const uint32_t start = SendStart("c1");
  ASSERT_TRUE(Until([&] { return backend_.Held("start c1"); }));
  EXPECT_EQ(State("c1")->status(), pb::CREATED);
  backend_.Release("start c1");
  EXPECT_TRUE(Take(start));
}

TEST_F(TaskQuery, StateOfWhatIsBeingMadeIsUnknown) {
  Announce("c1");
  backend_.Hold("create c1");
  const uint32_t create = Send("Create", CreateRequest("c1"), "c1");
  ASSERT_TRUE(Until([&] { return backend_.Held("create c1"); }));
  EXPECT_EQ(State("c1")->status(), pb::UNKNOWN);
  backend_.Release("create c1");
  EXPECT_TRUE(Take(create));
}

TEST_F(TaskQuery, AContainerIsSeenOnItsOwnSocketOnly) {
  Run("a");
  Announce("b");
  pb::StateRequest request;
  request.set_id("a");
  // Same containerd, same namespace: any socket of it will do.
  EXPECT_TRUE(Ask<pb::StateResponse>("State", request, "b"));
  EXPECT_FALSE(Ask<pb::StateResponse>("State", request, "of-nobody"));
}

TEST_F(TaskQuery, PidsNameExecs) {
  Run("c1");
  RunExec("c1/e1");
  backend_.SetProcesses({{4001, ExecId()}, {4002, ExecId()}, {77, ExecId()}});
  const auto pids = Pids("c1");
  ASSERT_TRUE(pids);
  ASSERT_EQ(pids->processes_size(), 3);
  EXPECT_FALSE(pids->processes(0).has_info());
  EXPECT_EQ(pids->processes(1).info().type_url(), "containerd.runc.v1.ProcessDetails");
  containerd::runc::v1::ProcessDetails details;
  ASSERT_TRUE(details.ParseFromString(pids->processes(1).info().value()));
  EXPECT_EQ(details.exec_id(), "e1");
  EXPECT_FALSE(pids->processes(2).has_info());
}

TEST_F(TaskQuery, PidsTakeTheBackendsWordForAnExec) {
  Run("c1");
  backend_.SetProcesses({{12, *ExecId::Parse("inside")}});
  const auto pids = Pids("c1");
  ASSERT_TRUE(pids);
  containerd::runc::v1::ProcessDetails details;
  ASSERT_TRUE(details.ParseFromString(pids->processes(0).info().value()));
  EXPECT_EQ(details.exec_id(), "inside");
}

TEST_F(TaskQuery, PidsAreNeverEmpty) {
  Announce("c1");
  ASSERT_TRUE(Create("c1"));
  ASSERT_EQ(Pids("c1")->processes_size(), 1);
  ASSERT_TRUE(Start("c1"));
  ASSERT_EQ(Pids("c1")->processes_size(), 1);
  End("c1", 7);
  const auto pids = Pids("c1");
  ASSERT_EQ(pids->processes_size(), 1);
  EXPECT_EQ(pids->processes(0).pid(), 4001U);
}

TEST_F(TaskQuery, PidsAreNeverEmptyWhereTheBackendCannotTell) {
  Run("c1");
  backend_.LeaveOut("processes");
  EXPECT_EQ(Pids("c1")->processes_size(), 1);
  backend_.FailNext("processes c1", Error{Code::kNotFound, 0, "it has just gone", {}});
  EXPECT_EQ(Pids("c1")->processes_size(), 1);
}

TEST_F(TaskQuery, StatsComeFromTheBackend) {
  Run("c1");
  const auto stats = Stats("c1");
  ASSERT_TRUE(stats);
  EXPECT_EQ(stats->stats().type_url(), "io.containerd.cgroups.v2.Metrics");
  EXPECT_EQ(PidsOf(stats->stats().value()), 7U);
  End("c1", 0);
  EXPECT_TRUE(Stats("c1"));
}

TEST_F(TaskQuery, StatsSayWhatTheBackendLacks) {
  Run("c1");
  backend_.LeaveOut("stats");
  EXPECT_EQ(CodeOf(Stats("c1")), Code::kUnimplemented);
}

TEST_F(TaskQuery, SurvivesADeleteDuringACall) {
  Run("c1");
  End("c1", 0);
  backend_.Hold("stats c1");
  pb::StatsRequest request;
  request.set_id("c1");
  const uint32_t stats = Send("Stats", request, "c1");
  ASSERT_TRUE(Until([&] { return backend_.Held("stats c1"); }));
  EXPECT_TRUE(Delete("c1"));
  backend_.Release("stats c1");
  EXPECT_TRUE(Take(stats));
}

TEST_F(TaskQuery, ConnectIsFineForUnknownIds) {
  Announce("c1");
  const auto unknown = Connect("c1");
  ASSERT_TRUE(unknown);
  EXPECT_EQ(unknown->task_pid(), 0U);
  EXPECT_EQ(unknown->shim_pid(), static_cast<uint32_t>(getppid()));
  ASSERT_TRUE(Create("c1"));
  EXPECT_EQ(Connect("c1")->task_pid(), 4001U);
}

TEST_F(TaskQuery, ShutdownIsNothing) {
  Run("c1");
  pb::ShutdownRequest request;
  request.set_id("c1");
  request.set_now(true);
  EXPECT_TRUE(Ask<wire::Empty>("Shutdown", request, "c1"));
  EXPECT_EQ(State("c1")->status(), pb::RUNNING);
}

TEST_F(TaskQuery, UnknownIdsAndMethodsHaveTheirCodes) {
  Announce("c1");
  EXPECT_EQ(MessageOf(Pids("c1")), "container not created: not found");
  EXPECT_EQ(MessageOf(Stats("c1")), "container not created: not found");
  EXPECT_EQ(CodeOf(Ask<wire::Empty>("Nonsense", pb::StateRequest(), "c1")), Code::kUnimplemented);
}

}  // namespace
}  // namespace gantry::task
