// SPDX-License-Identifier: Apache-2.0
//
// Containers with a build of runsc whose internal commands are of no use: their sentries are
// started by `runsc create`.
#include <signal.h>

#include <algorithm>
#include <memory>

#include <gmock/gmock.h>

#include "tests/harness/changed_runsc.h"
#include "tests/harness/gvisor_test.h"

namespace gantry::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class GvisorCreate : public GvisorTest {
 protected:
  void SetUp() override {
    GvisorTest::SetUp();
    if (!IsSkipped()) {
      runsc_ = std::make_unique<ChangedRunsc>(settings());
    }
  }

  Words Flags(Words more = {}, const std::string& options = "") {
    Words words = WithOptions("binary_name = \"" + runsc_->path() + "\"\n" + options);
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  static std::vector<HostProcess> Created(const std::string& id) {
    return ChangedRunsc::Of(node().bundles() + "/" + id);
  }

  static size_t Count(const std::vector<HostProcess>& all, const std::string& name) {
    return static_cast<size_t>(std::ranges::count(all, name, &HostProcess::name));
  }

  static void KillEngine() {
    const pid_t engine = node().Engine().pid;
    ASSERT_NE(engine, 0);
    kill(engine, SIGKILL);
    ASSERT_TRUE(WaitGone(engine));
  }

  static Program::Options Terminal() {
    Program::Options options;
    options.terminal = true;
    return options;
  }

  static Output Gantryctl(const Words& words) {
    Words all{"env", "GANTRY_RUN_DIR=" + settings().run_dir, settings().gantry_bin + "/gantryctl"};
    all.insert(all.end(), words.begin(), words.end());
    return RunProgram(all);
  }

  /// After a run that failed: nothing runs, and the id is free.
  void ExpectNothingLeft(const std::string& id) {
    EXPECT_THAT(Created(id), IsEmpty()) << Describe(Created(id));
    EXPECT_THAT(MountsBelow(node().bundles()), IsEmpty());
    Ctr({"containers", "rm", id});  // With a failed Create ctr leaves the container.
    const Output again = RunContainer(Flags({"--rm"}), id, {"echo", "fine"});
    EXPECT_EQ(again.out, "fine\n") << again.Text();
  }

  std::unique_ptr<ChangedRunsc> runsc_;
};

TEST_F(GvisorCreate, HasItsStreamsAndGivesTheCode) {
  Program::Options options;
  options.input = true;
  Program program = StartCtr(
      node(), RunWords(Flags({"--rm"}), Id(), {"sh", "-c", "cat; echo err >&2; exit 7"}), options);
  program.Write("in\n");
  // Before it runs, ctr does not pass on that there is no more.
  ASSERT_TRUE(program.ReadUntil("in\n")) << program.err();
  program.CloseInput();
  EXPECT_EQ(program.Wait(), 7) << program.err();
  EXPECT_EQ(program.out(), "in\n");
  EXPECT_TRUE(program.err().ends_with("err\n")) << program.err();
}

TEST_F(GvisorCreate, IsOneSentryAndItsGofer) {
  const std::string id = Id();
  StartDetached(id, {"sleep", "1000"}, Flags());
  const auto all = Created(id);
  EXPECT_EQ(Count(all, "runsc-sandbox"), 1U) << Describe(all);
  EXPECT_EQ(Count(all, "runsc-gofer"), 1U) << Describe(all);
  EXPECT_EQ(all.size(), 2U) << Describe(all);
  EXPECT_EQ(Exec(id, {"sh", "-c", "exit 3"}).status, 3);
  // Who looks after it by hand finds it.
  const std::string root = "--root=" + node().bundles() + "/" + id + "/runsc";
  EXPECT_EQ(RunProgram({Runsc(), root, "list", "--quiet"}).out, id + "\n");
  EXPECT_THAT(RunProgram({Runsc(), root, "debug", "--stacks", id}).Text(), HasSubstr("goroutine"));
  EXPECT_EQ(Ctr({"tasks", "kill", "-s", "KILL", id}).status, 0);
  EXPECT_TRUE(WaitForState(id, "STOPPED"));
  Remove(id);
  EXPECT_THAT(Created(id), IsEmpty());
}

TEST_F(GvisorCreate, IsSharedByFurtherContainers) {
  const std::string root = Id("-root");
  const std::string further = Id("-further");
  StartDetached(root, {"sleep", "1000"}, Flags(AsRoot(root)));
  Words flags = Flags(AsFurther(root));
  flags.emplace_back("--rm");
  EXPECT_EQ(RunContainer(flags, further, {"sh", "-c", "exit 4"}).status, 4);
  EXPECT_THAT(Created(further), IsEmpty());
  Remove(root);
}

TEST_F(GvisorCreate, HasATerminal) {
  Program program = StartCtr(node(), RunWords(Flags({"--rm", "-t"}), Id(), {"sh"}), Terminal());
  program.Write("until [ \"$(stty size)\" = '24 80' ]; do sleep 0.05; done; echo one-$((40+1))\n");
  ASSERT_TRUE(program.ReadUntil("one-41")) << program.out();
  program.Resize(41, 99);
  program.Write(
      "trap 'echo got-$((40+3))' WINCH; "
      "until [ \"$(stty size)\" = '41 99' ]; do sleep 0.05; done; echo two-$((40+2))\n");
  ASSERT_TRUE(program.ReadUntil("two-42")) << program.out();
  program.Write("trap 'exit 8' INT; echo three-$((40+3)); while :; do :; done\n");
  ASSERT_TRUE(program.ReadUntil("three-43")) << program.out();
  KillEngine();
  program.Write("\x03");
  EXPECT_EQ(program.Wait(), 8) << program.out();
}

TEST_F(GvisorCreate, GoesOnWithoutTheEngine) {
  const std::string id = Id();
  Program program = StartScript(Flags(), id, "trap 'exit 9' TERM; while :; do sleep 0.05; done");
  KillEngine();
  EXPECT_EQ(Exec(id, {"echo", "on"}).out, "on\n");
  EXPECT_EQ(Ctr({"tasks", "kill", "-s", "TERM", id}).status, 0);
  EXPECT_EQ(program.Wait(), 9) << program.err();
}

TEST_F(GvisorCreate, GivesTheCodeOfAnEndWithoutTheEngine) {
  const std::string id = Id();
  Program program = StartScript(Flags(), id, "sleep 1000");
  const auto all = Created(id);
  const auto sentry = std::ranges::find(all, "runsc-sandbox", &HostProcess::name);
  ASSERT_NE(sentry, all.end());
  KillEngine();
  kill(sentry->pid, SIGKILL);
  EXPECT_EQ(program.Wait(), 137) << program.err();
  ExpectNothingLeft(id);
}

TEST_F(GvisorCreate, ThatFailsSaysWhyAndLeavesNothing) {
  const std::string id = Id();
  const Output output = RunContainer(
      Flags({"--mount", "type=bind,src=/no/such/volume,dst=/x,options=rbind"}), id, {"true"});
  EXPECT_NE(output.status, 0);
  EXPECT_THAT(output.err, HasSubstr("/no/such/volume"));
  EXPECT_THAT(output.err, HasSubstr("runsc create"));
  EXPECT_THAT(output.err, HasSubstr("boot has changed"));
  ExpectNothingLeft(id);
}

TEST_F(GvisorCreate, ThatHangsIsEndedWithAllThatItHasStarted) {
  const std::string id = Id();
  // The canary, first: it has the same limit.
  ASSERT_EQ(RunContainer(Flags({"--rm"}), id, {"true"}).status, 0);
  runsc_->Hang();
  const Output output = RunContainer(Flags({}, "timeout_ms = 2000\n"), id, {"true"});
  EXPECT_NE(output.status, 0);
  EXPECT_THAT(output.err, HasSubstr("not done in time"));
  runsc_->HangNoMore();
  ExpectNothingLeft(id);
}

TEST_F(GvisorCreate, IsDoneOverWhereTheEngineIsKilledMeanwhile) {
  const std::string id = Id();
  runsc_->Hang();
  Program program = StartCtr(node(), RunWords(Flags(), id, {"sh", "-c", "exit 5"}), {});
  const std::string state = node().bundles() + "/" + id + "/runsc/";
  // The sentry is there, and its state is written.
  ASSERT_TRUE(Eventually([&] {
    return std::ranges::any_of(ListFolder(state),
                               [](const std::string& name) { return name.ends_with(".state"); });
  })) << program.err();
  const auto begun = Created(id);
  EXPECT_EQ(Count(begun, "runsc-sandbox"), 1U) << Describe(begun);
  runsc_->HangNoMore();
  KillEngine();
  // The next one removes it, and does what was asked for once more.
  EXPECT_EQ(program.Wait(), 5) << program.err();
  for (const HostProcess& process : begun) {
    EXPECT_TRUE(WaitGone(process.pid)) << process.command;
  }
  Remove(id);
  ExpectNothingLeft(id);
}

TEST_F(GvisorCreate, IsToldToWhoeverLooks) {
  const std::string id = Id();
  ASSERT_EQ(RunContainer(Flags({"--rm"}), id, {"true"}).status, 0);
  const std::string path_of_log = settings().run_dir + "/gantry.log";
  const size_t before = ReadText(path_of_log).size();
  // The next one says it anew.
  KillEngine();
  for (int run = 0; run < 2; ++run) {
    ASSERT_EQ(RunContainer(Flags({"--rm"}), id, {"true"}).status, 0);
  }
  const std::string log = ReadText(path_of_log).substr(before);
  const std::string said = "pods are started by '" + runsc_->path() + " create'";
  const size_t first = log.find(said);
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(log.find(said, first + 1), std::string::npos) << "it is said again";
  EXPECT_THAT(log.substr(first, log.find('\n', first) - first), HasSubstr("boot has changed"));
  EXPECT_THAT(Gantryctl({"status"}).out, HasSubstr("runsc_creates "));
  std::string configuration = GantryConfiguration(settings());
  const std::string real = Runsc();
  configuration.replace(configuration.find(real), real.size(), runsc_->path());
  const std::string path = settings().root + "/" + Id() + ".yaml";
  WriteText(path, configuration);
  const Output doctor = Gantryctl({"doctor", "--config", path});
  EXPECT_THAT(doctor.out, HasSubstr("pods are started by 'runsc create'")) << doctor.Text();
  EXPECT_THAT(doctor.out, HasSubstr("boot has changed")) << doctor.Text();
}

}  // namespace
}  // namespace gantry::e2e
