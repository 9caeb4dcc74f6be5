// SPDX-License-Identifier: Apache-2.0
//
// How ends become known, and in which order.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/process/process_id.h>

#include "core/config/config.h"
#include "tests/unit/task/task_test.h"

namespace gantry::task {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class TaskExits : public TaskTest {
 protected:
  /// A container whose init is a process of the keeper.
  ProcessId RunBound(const std::string& id, int32_t pid) {
    backend_.BindTo(id, HostPid{pid});
    const ProcessId process = keeper_.AddOrphan(pid);
    Run(id);
    return process;
  }
};

/// A container that has ended, and its last words.
class TaskExitsWithOutput : public TaskExits {
 protected:
  void Begin(std::chrono::milliseconds unread) {
    around_.config.timeouts.stdio_unread = unread;
    around_.config.timeouts.stdio_drain = std::chrono::minutes(1);
    RestartEngine();
    Announce("c1");
    pb::CreateTaskRequest request = CreateRequest("c1");
    request.set_stdout(dir_.path() + "/out");
    ASSERT_EQ(mkfifo(request.stdout().c_str(), 0600), 0);
    reader_.reset(open(request.stdout().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    // Of the process, too: the fake backend's does not exist.
    const UniqueFd process(open(request.stdout().c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    ASSERT_TRUE(Ask<pb::CreateTaskResponse>("Create", request, "c1"));
    ASSERT_TRUE(Start("c1"));
    wait_ = SendWait("c1");
    ASSERT_EQ(write(process.get(), "bye", 3), 3);
    ASSERT_TRUE(backend_.End("c1", 3));
  }

  UniqueFd reader_;
  uint32_t wait_ = 0;
};

TEST_F(TaskExitsWithOutput, AreToldWhenItIsRead) {
  Begin(std::chrono::minutes(1));
  ASSERT_TRUE(Until([&] { return State("c1")->status() == pb::STOPPED; }));
  ASSERT_TRUE(Until([&] { return RecordOf("c1").init.exited; }));
  EXPECT_FALSE(Answered(wait_));
  EXPECT_THAT(Events(), ElementsAre("create c1", "start c1"));
  char text[8];
  EXPECT_EQ(read(reader_.get(), text, sizeof(text)), 3);
  EXPECT_EQ(TakeAs<pb::WaitResponse>(wait_)->exit_status(), 3U);
  EXPECT_THAT(Events(), ElementsAre("create c1", "start c1", "exit c1 3"));
}

TEST_F(TaskExitsWithOutput, DoNotWaitForAReaderThatDoesNotRead) {
  Begin(std::chrono::milliseconds(1));
  EXPECT_EQ(TakeAs<pb::WaitResponse>(wait_)->exit_status(), 3U);
}

TEST_F(TaskExitsWithOutput, AreNotWaitedForWhereNothingRan) {
  around_.config.timeouts.stdio_drain = std::chrono::minutes(1);
  RestartEngine();
  Announce("c1");
  pb::CreateTaskRequest request = CreateRequest("c1");
  request.set_stdout(dir_.path() + "/out");
  ASSERT_EQ(mkfifo(request.stdout().c_str(), 0600), 0);
  reader_.reset(open(request.stdout().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  const UniqueFd heir(open(request.stdout().c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(Ask<pb::CreateTaskResponse>("Create", request, "c1"));
  backend_.FailNext("start c1", Error{Code::kNotFound, 0, "no such program", {}});
  EXPECT_FALSE(Start("c1"));
  EXPECT_TRUE(Delete("c1")) << "though somebody holds the fifo";
}

TEST_F(TaskExits, AreAnsweredToEveryWait) {
  Run("c1");
  const uint32_t first = SendWait("c1");
  const uint32_t second = SendWait("c1");
  ASSERT_TRUE(backend_.End("c1", 42));
  EXPECT_EQ(TakeAs<pb::WaitResponse>(first)->exit_status(), 42U);
  EXPECT_EQ(TakeAs<pb::WaitResponse>(second)->exit_status(), 42U);
  const auto late = TakeAs<pb::WaitResponse>(SendWait("c1"));
  EXPECT_EQ(late->exit_status(), 42U);
  EXPECT_EQ(late->exited_at().seconds(), 1'700'000'000);
}

TEST_F(TaskExits, AreOnRecordWhenTheyAreKnown) {
  Run("c1");
  End("c1", 42);
  const store::Record record = RecordOf("c1");
  EXPECT_EQ(record.state, State::kStopped);
  EXPECT_TRUE(record.init.exited);
  EXPECT_EQ(record.init.exit_status, 42U);
}

TEST_F(TaskExits, OfTheKeeperAreAcknowledgedOnceTheyAreOnRecord) {
  const ProcessId process = RunBound("c1", 500);
  const uint32_t wait = SendWait("c1");
  keeper_.End(process, SIGKILL);
  EXPECT_EQ(TakeAs<pb::WaitResponse>(wait)->exit_status(), 137U);
  EXPECT_TRUE(Until([&] { return !keeper_.acknowledged.empty(); }));
  EXPECT_THAT(keeper_.acknowledged, ElementsAre(process));
  EXPECT_THAT(Events(), ElementsAre("create c1", "start c1", "exit c1 137"));
}

TEST_F(TaskExits, AreReportedOnceWhateverTheBackendSays) {
  Run("c1");
  const uint32_t wait = SendWait("c1");
  ASSERT_TRUE(backend_.End("c1", 1));
  EXPECT_TRUE(Take(wait));
  Settle();
  EXPECT_EQ(std::ranges::count(Events(), "exit c1 1"), 1);
}

TEST_F(TaskExits, OfExecsComeBeforeTheContainers) {
  Run("c1");
  RunExec("c1/e1");
  RunExec("c1/e2");
  const uint32_t wait = SendWait("c1");
  ASSERT_TRUE(backend_.End("c1", 9));
  Settle();
  EXPECT_FALSE(Answered(wait));
  ASSERT_TRUE(backend_.End("c1/e2", 137));
  ASSERT_TRUE(backend_.End("c1/e1", 137));
  EXPECT_TRUE(Take(wait));
  const auto events = Events();
  ASSERT_GE(events.size(), 3U);
  EXPECT_EQ(events.back(), "exit c1 9");
  EXPECT_EQ(std::ranges::count(events, "exit c1/e1 137"), 1);
  EXPECT_EQ(std::ranges::count(events, "exit c1/e2 137"), 1);
}

TEST_F(TaskExits, WaitForAnExecThatIsStarting) {
  Run("c1");
  ASSERT_TRUE(Exec("c1/e1"));
  backend_.Hold("start c1/e1");
  const uint32_t start = SendStart("c1/e1");
  ASSERT_TRUE(Until([&] { return backend_.Held("start c1/e1"); }));
  const uint32_t wait = SendWait("c1");
  ASSERT_TRUE(backend_.End("c1", 9));
  ASSERT_TRUE(backend_.End("c1/e1", 137));
  Turn();
  EXPECT_FALSE(Answered(wait));
  backend_.Release("start c1/e1");
  EXPECT_TRUE(Take(start));
  EXPECT_TRUE(Take(wait));
  EXPECT_THAT(Events(), ElementsAre("create c1", "start c1", "exec-added c1/e1",
                                    "exec-started c1/e1", "exit c1/e1 137", "exit c1 9"));
}

TEST_F(TaskExits, LetNoFurtherExecStart) {
  Run("c1");
  RunExec("c1/e1");
  ASSERT_TRUE(Exec("c1/late"));
  const uint32_t wait = SendWait("c1");
  // The init has ended, its exec has not: its own end is not told yet.
  ASSERT_TRUE(backend_.End("c1", 9));
  Settle();
  EXPECT_EQ(CodeOf(Start("c1/late")), Code::kFailedPrecondition);
  ASSERT_TRUE(backend_.End("c1/e1", 137));
  EXPECT_TRUE(Take(wait));
}

TEST_F(TaskExits, AfterAFailedExecAreAcknowledged) {
  Run("c1");
  ASSERT_TRUE(Exec("c1/e1"));
  const ProcessId process = keeper_.AddOrphan(501);
  backend_.BindTo("c1/e1", HostPid{501});
  backend_.FailNext("start c1/e1", Error{Code::kInternal, 0, "bad luck", {}});
  EXPECT_FALSE(Start("c1/e1"));
  keeper_.End(process, SIGKILL);
  EXPECT_TRUE(Until([&] { return keeper_.exits.empty(); }));
  EXPECT_EQ(std::ranges::count(Events(), "exit c1/e1 137"), 0);
}

TEST_F(TaskExits, AreForgottenByNobodyWhenAConnectionCloses) {
  Run("c1");
  SendWait("c1");
  ASSERT_EQ(engine_->running(), 1U);
  engine_->ConnectionClosed(1);
  EXPECT_TRUE(Until([&] { return engine_->running() == 0; }));
  const uint32_t again = SendWait("c1");
  ASSERT_TRUE(backend_.End("c1", 4));
  EXPECT_EQ(TakeAs<pb::WaitResponse>(again)->exit_status(), 4U);
}

TEST_F(TaskExits, KeepThePid) {
  Run("c1");
  End("c1", 0);
  EXPECT_EQ(State("c1")->pid(), 4001U);
}

TEST_F(TaskExits, TakeTheKeepersLastResortAway) {
  const ProcessId process = RunBound("c1", 502);
  ASSERT_TRUE(Until([&] { return keeper_.last_resorts[1].init.has_value(); }));
  EXPECT_EQ(keeper_.last_resorts[1].init->pid, 502);
  keeper_.End(process, 0);
  EXPECT_TRUE(Until([&] { return !keeper_.last_resorts[1].init.has_value(); }));
}

}  // namespace
}  // namespace gantry::task
