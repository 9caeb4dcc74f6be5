// SPDX-License-Identifier: Apache-2.0
//
// The engine is killed and comes up again: nothing is lost, nothing done twice.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/process_id.h>

#include "core/log/log.h"
#include "tests/unit/task/task_test.h"

namespace gantry::task {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class TaskRecovery : public TaskTest {
 protected:
  /// "c1/e1".
  static pb::ExecProcessRequest ExecOfC1() {
    pb::ExecProcessRequest request;
    request.set_id("c1");
    request.set_exec_id("e1");
    request.mutable_spec()->set_value(R"({"args":["/bin/true"],"cwd":"/"})");
    return request;
  }

  ProcessId RunBound(const std::string& id, int32_t pid) {
    backend_.BindTo(id, HostPid{pid});
    const ProcessId process = keeper_.AddOrphan(pid);
    Run(id);
    return process;
  }

  uint64_t CountEvents(const std::string& event) {
    const auto events = Events();
    return static_cast<uint64_t>(std::ranges::count(events, event));
  }

  /// An engine was killed in the middle of taking `c1` away: its root has been unmounted.
  void CutShort(task::State state) {
    const std::string bundle = dir_.path() + "/c1";
    auto record = store::Read(bundle);
    ASSERT_TRUE(record) << record.error().message;
    record->state = state;
    record->mounts = {{"overlay", "overlay", bundle + "/rootfs"}};
    ASSERT_TRUE(store::Write(*record));
    RestartEngine();
  }
};

TEST_F(TaskRecovery, FindsARunningContainer) {
  backend_.SaveState("sandbox state", "container state");
  Run("c1");
  RestartEngine();
  const auto state = State("c1");
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_EQ(state->status(), pb::RUNNING);
  EXPECT_EQ(state->pid(), 4001U);
  EXPECT_EQ(backend_.Count("recover sandbox c1 sandbox state"), 1U);
  EXPECT_EQ(backend_.Count("recover c1 container state"), 1U);
  EXPECT_EQ(backend_.Count("create c1"), 1U);
  End("c1", 3);
  EXPECT_EQ(Delete("c1")->exit_status(), 3U);
  EXPECT_THAT(Events(), ElementsAre("create c1", "start c1", "exit c1 3", "delete c1"));
}

TEST_F(TaskRecovery, FindsACreatedContainer) {
  Announce("c1");
  ASSERT_TRUE(Create("c1"));
  RestartEngine();
  EXPECT_EQ(State("c1")->status(), pb::CREATED);
  EXPECT_TRUE(Start("c1"));
}

TEST_F(TaskRecovery, MakesNothingReadyInARootThatIsGone) {
  backend_.SaveState("sandbox state", "container state");
  Announce("c1");
  ASSERT_TRUE(Create("c1"));
  std::string logged;
  log::SetSinkForTest([&](std::string_view line) { logged += line; });
  CutShort(State::kCreated);
  EXPECT_EQ(State("c1")->status(), pb::STOPPED);
  log::SetSinkForTest([](std::string_view) {});
  EXPECT_THAT(logged, AllOf(HasSubstr("its removal was cut short"), Not(HasSubstr("level=error"))));
  EXPECT_EQ(backend_.Count("recover sandbox c1 sandbox state"), 1U);
  EXPECT_EQ(backend_.Count("recover c1 container state"), 0U);
  EXPECT_EQ(Delete("c1")->exit_status(), 137U);
  EXPECT_THAT(Events(), ElementsAre("create c1", "exit c1 137", "delete c1"));
}

TEST_F(TaskRecovery, UndoesACreateWhoseRootIsGone) {
  backend_.SaveState("sandbox state", "container state");
  Announce("c1");
  ASSERT_TRUE(Create("c1"));
  CutShort(State::kCreating);
  EXPECT_EQ(CodeOf(State("c1")), Code::kNotFound);
  EXPECT_EQ(backend_.Count("recover c1 container state"), 0U);
  EXPECT_TRUE(Create("c1"));
}

TEST_F(TaskRecovery, FindsAStartThatIsNotOnRecord) {
  Announce("c1");
  ASSERT_TRUE(Create("c1"));
  backend_.SetStarted("c1");
  RestartEngine();
  EXPECT_EQ(State("c1")->status(), pb::RUNNING);
  EXPECT_TRUE(Exec("c1/e1"));
  EXPECT_EQ(CodeOf(Start("c1")), Code::kFailedPrecondition);
  End("c1", 3);
  EXPECT_EQ(Delete("c1")->exit_status(), 3U);
}

TEST_F(TaskRecovery, TakesTheRecordsWordWhereTheBackendHasNone) {
  Announce("c1");
  ASSERT_TRUE(Create("c1"));
  backend_.FailNext("has started c1", Error{Code::kInternal, 0, "no idea", {}});
  RestartEngine();
  EXPECT_EQ(State("c1")->status(), pb::CREATED);
  EXPECT_TRUE(Start("c1"));
}

TEST_F(TaskRecovery, AcknowledgesEndsThatAreNobodys) {
  const ProcessId own = RunBound("c1", 700);
  keeper_.Hangup();
  keeper_.End({4242, 5}, 0);
  RestartEngine();
  EXPECT_TRUE(Until([&] { return keeper_.exits.empty(); }));
  EXPECT_THAT(keeper_.acknowledged, ElementsAre(ProcessId{4242, 5}));
  const uint32_t wait = SendWait("c1");
  keeper_.End(own, 9 << 8);
  EXPECT_EQ(TakeAs<pb::WaitResponse>(wait)->exit_status(), 9U);
}

TEST_F(TaskRecovery, FindsAPausedContainer) {
  Run("c1");
  pb::PauseRequest pause;
  pause.set_id("c1");
  ASSERT_TRUE(Ask<wire::Empty>("Pause", pause, "c1"));
  RestartEngine();
  EXPECT_EQ(State("c1")->status(), pb::PAUSED);
}

TEST_F(TaskRecovery, KeepsAnExitThatIsOnRecord) {
  Run("c1");
  End("c1", 9);
  Settle();  // Its Wait is answered before it is noted that the event went out.
  RestartEngine();
  EXPECT_EQ(State("c1")->status(), pb::STOPPED);
  EXPECT_EQ(TakeAs<pb::WaitResponse>(SendWait("c1"))->exit_status(), 9U);
  EXPECT_EQ(CountEvents("exit c1 9"), 1U);
  EXPECT_EQ(Delete("c1")->exit_status(), 9U);
}

TEST_F(TaskRecovery, LearnsAnExitThatTheKeeperSawMeanwhile) {
  const ProcessId process = RunBound("c1", 700);
  keeper_.Hangup();
  keeper_.End(process, 6 << 8);
  RestartEngine();
  EXPECT_EQ(TakeAs<pb::WaitResponse>(SendWait("c1"))->exit_status(), 6U);
  EXPECT_EQ(CountEvents("exit c1 6"), 1U);
  EXPECT_TRUE(Until([&] { return keeper_.exits.empty(); }));
}

TEST_F(TaskRecovery, RepeatsAnExitThatWasRecordedAndNotAcknowledged) {
  const ProcessId process = RunBound("c1", 701);
  const uint32_t wait = SendWait("c1");
  keeper_.End(process, 6 << 8);
  ASSERT_TRUE(Take(wait));
  // As if the engine had died between the record and the acknowledgement.
  RestartEngine();
  keeper_.Hangup();
  keeper_.End(process, 6 << 8);
  RestartEngine();
  EXPECT_EQ(State("c1")->exit_status(), 6U);
  EXPECT_TRUE(Until([&] { return keeper_.exits.empty(); }));
  EXPECT_GE(CountEvents("exit c1 6"), 1U);
}

TEST_F(TaskRecovery, LearnsAnExitThatTheBackendTells) {
  Run("c1");
  backend_.SetEnded("c1", 8);
  RestartEngine();
  EXPECT_EQ(TakeAs<pb::WaitResponse>(SendWait("c1"))->exit_status(), 8U);
  EXPECT_THAT(Events(), ElementsAre("create c1", "start c1", "exit c1 8"));
}

TEST_F(TaskRecovery, FindsExecs) {
  Run("c1");
  RunExec("c1/runs");
  RunExec("c1/ended");
  ASSERT_TRUE(Exec("c1/added"));
  End("c1/ended", 5);
  RestartEngine();
  EXPECT_EQ(State("c1/runs")->status(), pb::RUNNING);
  EXPECT_EQ(State("c1/ended")->exit_status(), 5U);
  EXPECT_EQ(State("c1/added")->status(), pb::CREATED);
  EXPECT_TRUE(Start("c1/added"));
  End("c1/runs", 1);
  EXPECT_TRUE(Delete("c1/runs"));
  EXPECT_TRUE(Delete("c1/ended"));
}

TEST_F(TaskRecovery, AsksAgainForAnExecWhereSomethingIsShort) {
  Run("c1");
  RunExec("c1/e1");
  backend_.FailNext("recover c1/e1", Error{Code::kResourceExhausted, 0, "no descriptors", {}});
  RestartEngine();
  EXPECT_EQ(State("c1/e1")->status(), pb::RUNNING);
  EXPECT_EQ(backend_.Count("recover c1/e1"), 2U);
  End("c1/e1", 5);
  EXPECT_EQ(Delete("c1/e1")->exit_status(), 5U);
}

TEST_F(TaskRecovery, StartsAnExecWhoseStartNeverTookEffect) {
  Run("c1");
  ASSERT_TRUE(Exec("c1/e1"));
  backend_.Hold("exec c1");
  SendStart("c1/e1");
  ASSERT_TRUE(Until([&] { return backend_.Held("exec c1"); }));
  backend_.FailNext("recover c1/e1", Error{Code::kAborted, 0, "it never ran", {}});
  RestartEngine();
  EXPECT_EQ(State("c1/e1")->status(), pb::CREATED);
  backend_.Release("exec c1");
  const auto started = Start("c1/e1", true);
  EXPECT_TRUE(started) << started.error().message;
}

TEST_F(TaskRecovery, StartsAnExecWhoseProcessIsOnRecordAndNeverRan) {
  Run("c1");
  ASSERT_TRUE(Exec("c1/e1"));
  const ProcessId process = keeper_.AddOrphan(750);
  backend_.BindTo("c1/e1", HostPid{750});
  backend_.Hold("start c1/e1");
  SendStart("c1/e1");
  ASSERT_TRUE(Until([&] { return backend_.Held("start c1/e1"); }));
  // What is saved meanwhile has the process, too.
  RunExec("c1/e2");
  backend_.FailNext("recover c1/e1", Error{Code::kAborted, 0, "it never ran", {}});
  RestartEngine();
  EXPECT_EQ(State("c1/e1")->status(), pb::CREATED);
  keeper_.End(process, 9);
  backend_.Release("start c1/e1");
  const ProcessId again = keeper_.AddOrphan(751);
  backend_.BindTo("c1/e1", HostPid{751});
  const auto started = Start("c1/e1", true);
  EXPECT_TRUE(started) << started.error().message;
  EXPECT_EQ(State("c1/e1")->status(), pb::RUNNING);
  const uint32_t wait = SendWait("c1/e1");
  keeper_.End(again, 9);
  EXPECT_TRUE(Take(wait));
}

// What its backend had made of it by then is ended, and made again by the Start that is replayed.
TEST_F(TaskRecovery, AReaderDoesNotSeeThatTheStartOfAnExecIsDoneAnew) {
  Run("c1");
  pb::ExecProcessRequest request = ExecOfC1();
  request.set_stdout(dir_.path() + "/out");
  ASSERT_EQ(mkfifo(request.stdout().c_str(), 0600), 0);
  const UniqueFd reader(open(request.stdout().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(Ask<wire::Empty>("Exec", request, "c1"));
  auto ends = UnixSocketPair();
  ASSERT_TRUE(ends);
  std::atomic<bool> attached = false;
  std::promise<void> begun;
  const auto has_begun = begun.get_future().share();
  std::promise<void> let_go;
  const auto goes_on = let_go.get_future().share();
  backend_.UseProcess([&, goes_on](ProcessContext& context, bool) -> Status {
    if (!attached.exchange(true)) {
      GANTRY_CHECK_OK(context.AttachStream(Stream::kStdout, std::move(ends->first)));
      begun.set_value();
      goes_on.wait();
    }
    return {};
  });
  SendStart("c1/e1");
  ASSERT_TRUE(Until(
      [&] { return has_begun.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }));
  backend_.FailNext("recover c1/e1", Error{Code::kAborted, 0, "it never ran", {}});
  backend_.Hold("recover c1/e1");
  RestartEngine();
  ASSERT_TRUE(Until([&] { return backend_.Held("recover c1/e1"); }));
  ends->second.reset();
  const auto dropped = [&] {
    return std::ranges::none_of(
        keeper_.stored, [](const auto& stored) { return stored.first.ends_with("/stdout-w"); });
  };
  for (int turn = 0; turn < 4; ++turn) {
    engine_->loop().RunOnce(std::chrono::milliseconds(50));
  }
  EXPECT_FALSE(dropped()) << "its client has seen an end";
  backend_.Release("recover c1/e1");
  let_go.set_value();
  EXPECT_EQ(State("c1/e1")->status(), pb::CREATED);
  EXPECT_FALSE(dropped());
  EXPECT_TRUE(Start("c1/e1", true));
}

TEST_F(TaskRecovery, AnExecWhoseInputEndedBeforeItsStartSeesThatEnd) {
  Run("c1");
  pb::ExecProcessRequest request = ExecOfC1();
  request.set_stdin(dir_.path() + "/in");
  ASSERT_EQ(mkfifo(request.stdin().c_str(), 0600), 0);
  ASSERT_TRUE(Ask<wire::Empty>("Exec", request, "c1"));
  pb::CloseIORequest close;
  close.set_id("c1");
  close.set_exec_id("e1");
  close.set_stdin(true);
  ASSERT_TRUE(Ask<wire::Empty>("CloseIO", close, "c1"));
  RestartEngine();
  ASSERT_TRUE(Start("c1/e1"));
  EXPECT_TRUE(Until([&] {
    return std::ranges::none_of(
        keeper_.stored, [](const auto& stored) { return stored.first.ends_with("/stdin-w"); });
  })) << "its input is held open";
}

TEST_F(TaskRecovery, AnswersAReplayedStartOfARunningExec) {
  Run("c1");
  ASSERT_TRUE(Exec("c1/e1"));
  backend_.Hold("start c1/e1");
  SendStart("c1/e1");
  ASSERT_TRUE(Until([&] { return backend_.Held("start c1/e1"); }));
  RestartEngine();
  backend_.Release("start c1/e1");
  ASSERT_TRUE(Start("c1/e1", true));
  End("c1/e1", 2);
  const auto events = Events();
  EXPECT_THAT(events, ElementsAre("create c1", "start c1", "exec-added c1/e1", "exec-started c1/e1",
                                  "exit c1/e1 2"));
}

TEST_F(TaskRecovery, RollsAnUnfinishedCreateBack) {
  Announce("c1");
  backend_.Hold("create c1");
  Send("Create", CreateRequest("c1"), "c1");
  ASSERT_TRUE(Until([&] { return backend_.Held("create c1"); }));
  backend_.FailNext("recover c1", Error{Code::kAborted, 0, "it was never finished", {}});
  RestartEngine();
  EXPECT_EQ(CodeOf(State("c1")), Code::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(store::PathOf(dir_.path() + "/c1")));
  backend_.Release("create c1");
  // The request comes again and is done anew.
  const auto created = Ask<pb::CreateTaskResponse>("Create", CreateRequest("c1"), "c1", true);
  EXPECT_TRUE(created) << created.error().message;
}

/// A Create with a stdout that somebody reads, held back in the backend.
class TaskStreamRecovery : public TaskRecovery {
 protected:
  void SetUp() override {
    Announce("c1");
    request_ = CreateRequest("c1");
    request_.set_stdout(dir_.path() + "/out");
    ASSERT_EQ(mkfifo(request_.stdout().c_str(), 0600), 0);
    reader_.reset(open(request_.stdout().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    backend_.Hold("create c1");
    Send("Create", request_, "c1");
    ASSERT_TRUE(Until([&] { return backend_.Held("create c1"); }));
    backend_.FailNext("recover c1", Error{Code::kAborted, 0, "it was never finished", {}});
  }

  /// The keeper still holds the process's end, so that the reader sees no end. (The
  /// engine that was killed holds its own here, being a part of the test.)
  bool Held() const { return keeper_.stored.contains("1//io/stdout-w"); }

  pb::CreateTaskRequest request_;
  UniqueFd reader_;
};

TEST_F(TaskStreamRecovery, AReaderDoesNotSeeThatACreateIsDoneAnew) {
  RestartEngine();
  EXPECT_EQ(CodeOf(State("c1")), Code::kNotFound);
  EXPECT_TRUE(Held());
  backend_.Release("create c1");
  ASSERT_TRUE(Ask<pb::CreateTaskResponse>("Create", request_, "c1", true));
  ASSERT_TRUE(Start("c1"));
  EXPECT_TRUE(Until([&] { return !Held(); }));
}

TEST_F(TaskStreamRecovery, StreamsEndWhereTheCreateDoesNotComeAgain) {
  RestartEngine();
  EXPECT_EQ(CodeOf(State("c1")), Code::kNotFound);
  EXPECT_TRUE(Held());
  backend_.Release("create c1");
  keeper_.RemoveInstance(1);
  EXPECT_TRUE(Until([&] { return keeper_.stored.empty(); }));
}

TEST_F(TaskRecovery, AnswersAReplayedCreateAndStart) {
  Run("c1");
  RestartEngine();
  const auto created = Ask<pb::CreateTaskResponse>("Create", CreateRequest("c1"), "c1", true);
  ASSERT_TRUE(created);
  EXPECT_EQ(created->pid(), 4001U);
  EXPECT_TRUE(Start("c1", true));
  EXPECT_EQ(backend_.Count("start c1"), 1U);
}

TEST_F(TaskRecovery, HasNoTaskWhereNoneWasCreated) {
  Announce("c1");
  RestartEngine();
  EXPECT_EQ(CodeOf(State("c1")), Code::kNotFound);
  EXPECT_TRUE(Create("c1"));
}

TEST_F(TaskRecovery, LetsCallsWaitUntilTheContainerIsThere) {
  Run("a");
  Run("b");
  backend_.Hold("recover a");
  RestartEngine();
  ASSERT_TRUE(Until([&] { return backend_.Held("recover a"); }));
  pb::StateRequest request;
  request.set_id("a");
  const uint32_t waiting = Send("State", request, "a");
  EXPECT_TRUE(State("b"));
  EXPECT_FALSE(Answered(waiting));
  backend_.Release("recover a");
  EXPECT_TRUE(Take(waiting));
}

TEST_F(TaskRecovery, FreesTheIdOfOneThatIsRemovedBeforeItsTurn) {
  Run("pod");
  Run("a", "pod");
  backend_.Hold("recover pod");
  RestartEngine();
  ASSERT_TRUE(Until([&] { return backend_.Held("recover pod"); }));
  keeper_.RemoveInstance(2);
  Announce("a", "pod");
  const uint32_t created = Send("Create", CreateRequest("a"), "pod");
  backend_.Release("recover pod");
  EXPECT_TRUE(TakeAs<pb::CreateTaskResponse>(created));
}

TEST_F(TaskRecovery, TakesTheContainersOfAGroupUpInTheirOrder) {
  Run("pod");
  Run("a", "pod");
  Run("b", "pod");
  RestartEngine();
  ASSERT_TRUE(State("b"));
  std::vector<std::string> recovered;
  for (const std::string& call : backend_.Calls()) {
    if (call.starts_with("recover ")) {
      recovered.push_back(call);
    }
  }
  EXPECT_THAT(recovered,
              ElementsAre("recover sandbox pod", "recover pod", "recover a", "recover b"));
}

TEST_F(TaskRecovery, KeepsTheExitOfAContainerThatItsBackendLost) {
  const ProcessId process = RunBound("c1", 702);
  backend_.FailNext("recover c1", Error{Code::kInternal, 0, "state file is gone", {}});
  RestartEngine();
  EXPECT_EQ(State("c1")->status(), pb::RUNNING);
  const uint32_t wait = SendWait("c1");
  keeper_.End(process, SIGKILL);
  EXPECT_EQ(TakeAs<pb::WaitResponse>(wait)->exit_status(), 137U);
  EXPECT_TRUE(Delete("c1"));
}

TEST_F(TaskRecovery, KeepsTheExitOfAContainerWhosePluginIsGone) {
  const ProcessId process = RunBound("c1", 703);
  around_.backend_error = "no such file";
  RestartEngine();
  EXPECT_EQ(State("c1")->status(), pb::RUNNING);
  pb::PauseRequest pause;
  pause.set_id("c1");
  EXPECT_EQ(CodeOf(Ask<wire::Empty>("Pause", pause, "c1")), Code::kUnavailable);
  const uint32_t wait = SendWait("c1");
  keeper_.End(process, SIGKILL);
  EXPECT_EQ(TakeAs<pb::WaitResponse>(wait)->exit_status(), 137U);
  EXPECT_TRUE(Delete("c1"));
}

TEST_F(TaskRecovery, PutsADamagedRecordAside) {
  const std::string bundle = dir_.path() + "/c1";
  Run("c1");
  ASSERT_TRUE(ReplaceFile(store::PathOf(bundle), "garbage", 0600));
  RestartEngine();
  EXPECT_EQ(CodeOf(State("c1")), Code::kNotFound);
  EXPECT_TRUE(std::filesystem::exists(store::PathOf(bundle) + ".bad"));
}

TEST_F(TaskRecovery, LeavesARecordThatCannotBeRead) {
  const std::string record = store::PathOf(dir_.path() + "/c1");
  Run("c1");
  std::filesystem::rename(record, record + ".good");
  std::filesystem::create_symlink(record, record);
  keeper_.Hangup();
  keeper_.End({4242, 5}, 0);
  RestartEngine();
  EXPECT_EQ(CodeOf(State("c1")), Code::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(record + ".bad"));
  EXPECT_EQ(keeper_.exits.size(), 1U) << "it may be one of its own";
  std::filesystem::rename(record + ".good", record);
  RestartEngine();
  EXPECT_EQ(State("c1")->status(), pb::RUNNING);
  EXPECT_TRUE(Until([&] { return keeper_.exits.empty(); }));
}

TEST_F(TaskRecovery, ServesADeleteCallOfWhatItTookUp) {
  Run("c1");
  RestartEngine();
  keeper_.AskToDelete(5, 1);
  ASSERT_TRUE(Until([&] { return !keeper_.deleted.empty(); }));
  EXPECT_EQ(keeper_.deleted[0].code, 0);
  EXPECT_EQ(backend_.Count("delete c1"), 1U);
}

TEST_F(TaskRecovery, DropsWhatIsStoredForInstancesThatAreGone) {
  Run("c1");
  for (const char* name : {"1/backend/a", "99//io/console", "99/sandbox/backend/a", "events"}) {
    keeper_.stored[name] = UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC));
  }
  RestartEngine();
  ASSERT_TRUE(State("c1"));
  EXPECT_TRUE(Until([&] {
    return !keeper_.stored.contains("99//io/console") &&
           !keeper_.stored.contains("99/sandbox/backend/a");
  }));
  EXPECT_TRUE(keeper_.stored.contains("1/backend/a"));
  EXPECT_TRUE(keeper_.stored.contains("events"));
}

TEST_F(TaskRecovery, SurvivesSeveralInARow) {
  Run("c1");
  RunExec("c1/e1");
  for (int i = 0; i < 3; ++i) {
    RestartEngine();
    EXPECT_EQ(State("c1/e1")->status(), pb::RUNNING);
  }
  End("c1/e1", 1);
  End("c1", 2);
  EXPECT_EQ(Delete("c1")->exit_status(), 2U);
  EXPECT_THAT(Events(),
              ElementsAre("create c1", "start c1", "exec-added c1/e1", "exec-started c1/e1",
                          "exit c1/e1 1", "exit c1 2", "delete c1"));
}

}  // namespace
}  // namespace gantry::task
