// SPDX-License-Identifier: Apache-2.0
//
// A container's life with an OCI runtime that is a shell script.
#include "plugins/runc/container.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "tests/unit/runc/container_fixture.h"

namespace gantry::runc {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(RuncContainerTest, BindsAndSavesWhatWasMade) {
  Script("made");
  auto made = Create();
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_NE(container_.process.bound, nullptr);
  EXPECT_EQ(container_.cgroups_of, container_.process.bound->pid());
  EXPECT_EQ(container_.blob, Format("{} {} {}", container_.process.bound->pid().value,
                                    container_.process.bound->start_time(), dir_ / "oci"));
  EXPECT_THAT(VerbsOf(context_), ElementsAre("create"));
}

TEST_F(RuncContainerTest, DeletesAnEndedOneWithoutTheRuntime) {
  Script("made");
  auto made = Create();
  ASSERT_TRUE(made);
  ASSERT_TRUE(container_.process.bound->Signal(SIGKILL));
  ASSERT_TRUE(container_.process.bound->Wait(std::chrono::seconds(10)));
  EXPECT_TRUE((*made)->Delete());
  EXPECT_FALSE(IsThere(State()));
  EXPECT_TRUE((*made)->Delete());
  EXPECT_THAT(VerbsOf(context_), ElementsAre("create"));
}

TEST_F(RuncContainerTest, RunsPoststopHooksByTheRuntimesDelete) {
  request_.spec_json = R"({"hooks": {"poststop": [{"path": "/x"}]}})";
  Script("[ $VERB = create ] && made; exit 0");
  auto made = Create();
  ASSERT_TRUE(made);
  ASSERT_TRUE(container_.process.bound->Signal(SIGKILL));
  ASSERT_TRUE(container_.process.bound->Wait(std::chrono::seconds(10)));
  EXPECT_TRUE((*made)->Delete());
  EXPECT_THAT(VerbsOf(context_), ElementsAre("create", "delete"));
  EXPECT_THAT(context_.asked.back().argv, testing::Not(Contains("--force")));
  EXPECT_FALSE(IsThere(State()));
}

TEST_F(RuncContainerTest, LeavesACommandForItsEndWithoutAnEngine) {
  Script("[ $VERB = create ] && made; exit 0");
  ASSERT_TRUE(Create());
  EXPECT_FALSE(container_.cleanup) << "the kernel's way is enough";
  request_.spec_json = R"({"hooks": {"poststop": [{"path": "/x"}]}})";
  context_.asked.clear();
  container_.process.bound = nullptr;
  Script("[ $VERB = delete ] && exit 0; made");
  ASSERT_EQ(RemoveTree(State()).has_value(), true);
  ASSERT_TRUE(Create());
  ASSERT_TRUE(container_.cleanup);
  EXPECT_EQ(container_.cleanup->argv.front(), dir_ / "oci");
  EXPECT_THAT(container_.cleanup->argv, Contains("--root"));
  EXPECT_EQ(std::vector(container_.cleanup->argv.end() - 3, container_.cleanup->argv.end()),
            (std::vector<std::string>{"delete", "--force", "c1"}));
  EXPECT_EQ(container_.cleanup->cwd, request_.bundle);
  EXPECT_THAT(container_.cleanup->env, Contains(testing::StartsWith("PATH=")));
}

TEST_F(RuncContainerTest, ForcesALiveOneAwayEvenWithoutABinary) {
  Script("made");
  auto made = Create();
  ASSERT_TRUE(made);
  ASSERT_EQ(unlink((dir_ / "oci").c_str()), 0);
  EXPECT_TRUE((*made)->Delete());
  EXPECT_THAT(context_.asked.back().argv, Contains("--force"));
  EXPECT_THAT(context_.log, Contains(HasSubstr("taking 'c1' apart without it")));
  EXPECT_TRUE(container_.process.bound->Ended());
  EXPECT_FALSE(IsThere(State()));
}

TEST_F(RuncContainerTest, LogsNowhereWithoutItsBundle) {
  // Names in /tmp can be known before, and be a link there.
  Script("made");
  auto made = Create();
  ASSERT_TRUE(made);
  ASSERT_TRUE(RemoveTree(dir_ / "bundle"));
  Write(dir_ / "oci", "#!/bin/sh\npwd\necho \"$@\"\nexit 1\n", 0755);
  EXPECT_TRUE((*made)->Delete());
  EXPECT_THAT(context_.log,
              Contains(AllOf(HasSubstr("it printed: / --root"), HasSubstr("delete --force c1"),
                             testing::Not(HasSubstr("--log")))));
  EXPECT_FALSE(IsThere(State()));
}

TEST_F(RuncContainerTest, ForcesAwayWhenTheRuntimeHangs) {
  request_.options_json.insert(request_.options_json.size() - 1, ", \"DeleteTimeoutMs\": 200");
  Script("[ $VERB = create ] && made || sleep 1000");
  auto made = Create();
  ASSERT_TRUE(made);
  EXPECT_TRUE((*made)->Delete());
  EXPECT_TRUE(container_.process.bound->Ended());
  EXPECT_FALSE(IsThere(State()));
}

TEST_F(RuncContainerTest, UndoesACreationThatHangs) {
  request_.options_json = "{\"BinaryName\": \"" + dir_ / "oci" + "\", \"Root\": \"" +
                          dir_ / "root" + "\", \"TimeoutMs\": 1000}";
  Script("[ $VERB = create ] && made && sleep 1000; exit 1");
  auto made = Create();
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kDeadlineExceeded);
  EXPECT_FALSE(IsThere(State()));
}

TEST_F(RuncContainerTest, GivesItsRunsNoMoreTimeThanTheCallHas) {
  request_.spec_json = R"({"hooks": {"poststart": [{"path": "/x"}]}})";
  request_.options_json =
      "{\"BinaryName\": \"" + dir_ / "oci" + "\", \"Root\": \"" + dir_ / "root" + "\"}";
  Script("sleep 1000");
  context_.time_left = std::chrono::milliseconds(100);
  const auto hangs = Create();
  ASSERT_FALSE(hangs);
  EXPECT_EQ(hangs.error().code, Code::kDeadlineExceeded);
  EXPECT_THAT(hangs.error().message, HasSubstr("not done after 100 ms, killed"));

  Script("[ $VERB = create ] && made || sleep 1000");
  context_.time_left = std::chrono::seconds(60);
  const auto made = Create();
  ASSERT_TRUE(made) << made.error().message;
  context_.time_left = std::chrono::milliseconds(100);
  EXPECT_EQ((*made)->Start().error().code, Code::kDeadlineExceeded);
  EXPECT_TRUE((*made)->Delete());
  EXPECT_THAT(context_.log, Contains(HasSubstr("delete' for 'c1': not done after 100 ms")));
  EXPECT_TRUE(container_.process.bound->Ended());
  EXPECT_FALSE(IsThere(State()));
}

TEST_F(RuncContainerTest, RefusesSuccessWithoutAPid) {
  for (const char* body :
       {"exit 0", "echo hello > $PIDFILE", "echo -5 > $PIDFILE", "echo 99999999999 > $PIDFILE"}) {
    Script(body);
    auto made = Create();
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, Code::kInternal) << made.error().message;
    EXPECT_THAT(made.error().message, HasSubstr("it succeeded, but"));
  }
}

TEST_F(RuncContainerTest, UndoesWhatCannotBeBound) {
  container_.process.refuse_bind = true;
  Script("made");
  EXPECT_FALSE(Create());
  EXPECT_FALSE(IsThere(State()));
}

TEST_F(RuncContainerTest, RefusesALiveContainerOfSomebodyElse) {
  const auto other = RunShell("exec sleep 1000");
  MakeDir(State());
  Write(State() + "/status", Format(R"({{"pid": {}, "process-start-time": {}, "cgroup-path": ""}})",
                                    other->pid().value, other->start_time()));
  Script("made");
  auto made = Create();
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kAlreadyExists);
  EXPECT_FALSE(other->Ended());
  EXPECT_TRUE(IsThere(State() + "/status"));
}

TEST_F(RuncContainerTest, ClearsWhatADeadOneLeft) {
  MakeDir(State());
  Write(State() + "/status", R"({"pid": 4194999, "process-start-time": 1, "cgroup-path": ""})");
  Script("made");
  EXPECT_TRUE(Create());
}

TEST_F(RuncContainerTest, KeepsTheBinaryItWasMadeWith) {
  Script("made");
  ASSERT_TRUE(Create());
  const std::string blob = container_.blob;
  ASSERT_EQ(rename((dir_ / "oci").c_str(), (dir_ / "old").c_str()), 0);
  std::string moved = blob;
  moved.replace(moved.find("/oci"), 4, "/old");
  auto again = Recover(moved);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE((*again)->Delete());
  EXPECT_EQ(context_.asked.back().argv.at(0), dir_ / "old");
}

TEST_F(RuncContainerTest, PassesStdioOn) {
  TestPipe out;
  container_.process.stdio.out.fd = std::move(out.write_end);
  Script("echo from the runtime; exit 1");
  EXPECT_FALSE(Create());
  EXPECT_EQ(ReadStream(out.read_end), "from the runtime\n");
}

TEST_F(RuncContainerTest, StartsByTheRuntimeWhereThereIsNoFifo) {
  Script("[ $VERB = create ] && made; exit 0");
  auto made = Create();
  ASSERT_TRUE(made);
  EXPECT_TRUE((*made)->Start());
  EXPECT_THAT(VerbsOf(context_), ElementsAre("create", "start"));
}

TEST_F(RuncContainerTest, HasStartedACrunInitThatHasEndedSince) {
  Script("made; mkfifo $ROOT/$ID/exec.fifo");
  ASSERT_TRUE(Create());
  auto again = Recover(container_.blob);
  ASSERT_TRUE(again);
  const auto init = container_.process.bound;
  ASSERT_TRUE(init->Signal(SIGKILL));
  ASSERT_TRUE(init->Wait(std::chrono::seconds(10)));
  const Status started = (*again)->Start();
  EXPECT_TRUE(started) << started.error().message;
  EXPECT_FALSE(IsThere(State() + "/exec.fifo"));
}

TEST_F(RuncContainerTest, TellsWhetherItHasStarted) {
  Script("F=$ROOT/$ID/exec.fifo; mkdir -p $ROOT/$ID; mkfifo $F; exec 8<>$F; made");
  ASSERT_TRUE(Create());
  const auto recovered = Recover(container_.blob);
  ASSERT_TRUE(recovered);
  EXPECT_FALSE((*recovered)->HasStarted().value()) << "its init waits at the fifo";
  const auto init = container_.process.bound;
  ASSERT_TRUE(init->Signal(SIGKILL));
  ASSERT_TRUE(init->Wait(std::chrono::seconds(10)));
  EXPECT_TRUE((*recovered)->HasStarted().value()) << "crun's has gone on from there, and ended";
  EXPECT_FALSE(IsThere(State() + "/exec.fifo")) << "nothing of the start is left";
}

TEST_F(RuncContainerTest, LeavesNoTerminalBehindThatNeverCame) {
  container_.process.stdio.terminal = true;
  Script("made; exit 1");
  EXPECT_FALSE(Create());
  EXPECT_THAT(context_.stored, IsEmpty());
  Script("made");
  EXPECT_THAT(Create().error().message, HasSubstr("sent none"));
  EXPECT_THAT(context_.stored, IsEmpty());
}

TEST_F(RuncContainerTest, StartsByTheRuntimeForPoststartHooks) {
  request_.spec_json = R"({"hooks": {"poststart": [{"path": "/x"}]}})";
  Script("[ $VERB = create ] && made && mkfifo $ROOT/$ID/exec.fifo; exit 0");
  auto made = Create();
  ASSERT_TRUE(made);
  EXPECT_TRUE((*made)->Start());
  EXPECT_THAT(VerbsOf(context_), ElementsAre("create", "start"));
}

TEST_F(RuncContainerTest, RestoreAndCheckpointNeedCriu) {
  request_.options_json.insert(request_.options_json.size() - 1, ", \"CriuPath\": \"/none/criu\"");
  Script("made");
  auto made = Create();
  ASSERT_TRUE(made);
  EXPECT_EQ((*made)->Checkpoint({}).error().code, Code::kFailedPrecondition);
  ASSERT_TRUE((*made)->Delete());
  request_.checkpoint = "/some/where";
  EXPECT_THAT(Create().error().message, HasSubstr("install the package criu"));
}

TEST_F(RuncContainerTest, RestoresAtStart) {
  Write(dir_ / "criu", "", 0755);
  request_.options_json.insert(request_.options_json.size() - 1,
                               ", \"CriuPath\": \"" + dir_ / "criu" + "\"");
  request_.checkpoint = dir_ / "image";
  Script("made");
  auto made = Create();
  ASSERT_TRUE(made);
  EXPECT_THAT(VerbsOf(context_), IsEmpty());
  ASSERT_TRUE((*made)->Start());
  EXPECT_THAT(VerbsOf(context_), ElementsAre("restore"));
  EXPECT_THAT(context_.asked.back().argv, Contains(dir_ / "image"));
  EXPECT_NE(container_.process.bound, nullptr);
}

TEST_F(RuncContainerTest, PassesCheckpointFlags) {
  Write(dir_ / "criu", "", 0755);
  request_.options_json.insert(request_.options_json.size() - 1,
                               ", \"CriuPath\": \"" + dir_ / "criu" + "\"");
  Script("[ $VERB = create ] && made; exit 0");
  auto made = Create();
  ASSERT_TRUE(made);
  CheckpointRequest request;
  request.path = "/image";
  request.open_tcp = true;
  request.cgroups_mode = "soft";
  ASSERT_TRUE((*made)->Checkpoint(request));
  const auto& argv = context_.asked.back().argv;
  const std::vector<std::string> flags(argv.begin() + 7, argv.end());
  EXPECT_THAT(flags, ElementsAre("checkpoint", "--leave-running", "--tcp-established",
                                 "--manage-cgroups-mode", "soft", "--image-path", "/image",
                                 "--work-path", dir_ / "bundle/criu-work", "c1"));
  EXPECT_TRUE(IsThere(dir_ / "bundle/criu-work")) << "crun makes none";
  EXPECT_THAT(context_.asked.back().env, Contains(HasSubstr("PATH=" + dir_.path() + ":")));
}

TEST_F(RuncContainerTest, RecoversFromItsBlob) {
  Script("made");
  ASSERT_TRUE(Create());
  const auto process = std::exchange(container_.process.bound, nullptr);
  ASSERT_TRUE(Recover(container_.blob));
  EXPECT_EQ(container_.process.bound, process);
  EXPECT_EQ(container_.cgroups_of, process->pid());
}

TEST_F(RuncContainerTest, ReportsAnEndThatNobodyKnows) {
  ASSERT_TRUE(Recover("4194999 1 /usr/bin/crun"));
  ASSERT_TRUE(container_.process.exited);
  EXPECT_EQ(container_.process.exited->status, 255U);
}

TEST_F(RuncContainerTest, FinishesACreationThatWasUnderWay) {
  Script("made");
  ASSERT_TRUE(Create());
  container_.process.bound = nullptr;
  container_.blob.clear();
  ASSERT_TRUE(Recover(""));
  EXPECT_NE(container_.process.bound, nullptr);
  EXPECT_NE(container_.blob, "");
}

TEST_F(RuncContainerTest, RollsBackWhatCannotBeFinished) {
  Script("[ $VERB = create ] && made; exit 0");
  ASSERT_TRUE(Create());
  const auto process = container_.process.bound;
  request_.terminal = true;
  EXPECT_EQ(Recover("").error().code, Code::kAborted);
  EXPECT_FALSE(IsThere(State()));
  EXPECT_TRUE(process->Wait(std::chrono::seconds(10)));
  request_.terminal = false;
  EXPECT_EQ(Recover("").error().code, Code::kAborted);
}

TEST_F(RuncContainerTest, WaitsForACreationThatIsUnderWay) {
  // Ends only when the recovery is waiting, or at its leisure before that.
  context_.LeaveBehind("create/c1", RunShell("exit 1"));
  EXPECT_THAT(Recover("").error().message, HasSubstr("its creation failed"));
}

TEST(RuncSandbox, LogsUnknownOptionsOfARequest) {
  FakeSandboxContext context{Orphans::kAdopted};
  SandboxRequest request;
  request.options_json = R"({"Colour": 1, "ShimCgroup": "/x"})";
  ASSERT_TRUE(RuncSandbox::Make(request, context, Options()));
  EXPECT_THAT(context.log, ElementsAre(HasSubstr("'Colour'"), HasSubstr("'ShimCgroup'")));
}

}  // namespace
}  // namespace gantry::runc
