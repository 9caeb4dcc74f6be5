// SPDX-License-Identifier: Apache-2.0
//
// kill -9 of the engine at the worst moments: containerd sees no disconnect,
// no exit code is lost, no byte is lost or doubled, events stay in order.

#include <signal.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <thread>

#include <gmock/gmock.h>

#include "tests/harness/e2e_test.h"
#include "tests/harness/events.h"
#include "tests/harness/take_memory.h"

namespace gantry::e2e {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// Where two long texts part, for the reader of a failed test.
std::string FirstDifference(const std::string& wanted, const std::string& got) {
  const auto at = static_cast<size_t>(std::ranges::mismatch(wanted, got).in1 - wanted.begin());
  return "of " + std::to_string(wanted.size()) + " bytes " + std::to_string(got.size()) +
         " came; they part at " + std::to_string(at) + ": wanted '" + wanted.substr(at, 40) +
         "', got '" + got.substr(std::min(at, got.size()), 40) + "'";
}

class EngineKill : public E2eTest {
 protected:
  void SetUp() override {
    E2eTest::SetUp();
    if (!IsSkipped() && !HasFatalFailure() && settings().stock()) {
      GTEST_SKIP() << "the stock runtime has no engine";
    }
    keeper_ = IsSkipped() ? 0 : node().Keeper().pid;
  }

  void TearDown() override {
    if (!IsSkipped()) {
      EXPECT_EQ(node().Keeper().pid, keeper_) << "the keeper is another one";
      EXPECT_TRUE(Eventually([] { return node().Engine().pid != 0; }));
    }
    E2eTest::TearDown();
  }

  static void Kill() {
    HostProcess engine;
    ASSERT_TRUE(Eventually([&] {
      engine = node().Engine();
      return engine.pid != 0;
    })) << "no engine runs";
    kill(engine.pid, SIGKILL);
    ASSERT_TRUE(WaitGone(engine.pid));
  }

  static Program::Options Input() {
    Program::Options options;
    options.input = true;
    return options;
  }

  static Program::Options Terminal() {
    Program::Options options;
    options.terminal = true;
    return options;
  }

  // How many moments of a Create a test can see.
  static constexpr size_t kMoments = 6;

  // Whether the moment of that number has come, or a later one: some are short.
  // 0 is at once.
  static bool HasCome(size_t moment, const std::string& id, pid_t client) {
    const std::string bundle = node().bundles() + "/" + id;
    const std::function<bool()> moments[kMoments] = {
        // The keeper listens.
        [] { return !ListFolder(settings().run_dir + "/s").empty(); },
        // The first record is written.
        [&] { return std::filesystem::exists(bundle + "/gantry.record"); },
        // The OCI runtime runs.
        [&] {
          return !Processes([&](const HostProcess& process) {
                    return process.command.find("--bundle " + bundle + " ") != std::string::npos;
                  }).empty();
        },
        // It has a state.
        [&] { return std::filesystem::exists("/run/containerd/runc/" + settings().ns + "/" + id); },
        // It has told the pid.
        [&] { return std::filesystem::exists(bundle + "/init.pid"); },
        // All is over.
        [&] { return WaitGone(client, Duration(0)); },
    };
    const auto later = std::span(moments).subspan(moment == 0 ? 0 : moment - 1);
    return moment == 0 || std::ranges::any_of(later, [](const auto& come) { return come(); });
  }

 private:
  pid_t keeper_ = 0;
};

TEST_F(EngineKill, WithNothingRunningIsNotNoticed) {
  Kill();
  const Output output = RunContainer({"--rm"}, Id(), {"sh", "-c", "echo on; exit 3"});
  EXPECT_EQ(output.status, 3) << output.Text();
  EXPECT_EQ(output.out, "on\n");
}

TEST_F(EngineKill, LeavesAContainerAndItsPipes) {
  Program program =
      StartCtr(node(), RunWords({"--rm"}, Id(), {"sh", "-c", "cat; exit 7"}), Input());
  program.Write("before\n");
  ASSERT_TRUE(program.ReadUntil("before\n")) << program.err();
  Kill();
  program.Write("after\n");
  EXPECT_TRUE(program.ReadUntil("after\n")) << program.err();
  program.CloseInput();
  EXPECT_EQ(program.Wait(), 7) << program.err();
}

TEST_F(EngineKill, KeepsTheExitCodeOfWhatEndsMeanwhile) {
  const std::string id = Id();
  Program program =
      StartCtr(node(),
               RunWords({"--rm"}, id,
                        {"sh", "-c", "trap 'exit 9' TERM; echo up; while :; do sleep 0.05; done"}),
               {});
  ASSERT_TRUE(program.ReadUntil("up\n")) << program.err();
  const pid_t pid = FindTask(id).pid;
  ASSERT_GT(pid, 0);
  Kill();
  kill(pid, SIGTERM);
  EXPECT_EQ(program.Wait(), 9) << program.err();
}

TEST_F(EngineKill, LeavesExecs) {
  const std::string id = Id();
  StartDetached(id, {"sleep", "1000"});
  std::vector<Program> execs;
  for (int i = 0; i < 10; ++i) {
    execs.push_back(StartCtr(
        node(), ExecWords({}, id, {"sh", "-c", "echo up; read code; exit $code"}), Input()));
  }
  for (Program& exec : execs) {
    ASSERT_TRUE(exec.ReadUntil("up\n")) << exec.err();
  }
  Kill();
  for (size_t i = 0; i < execs.size(); ++i) {
    execs[i].Write(std::to_string(i + 10) + "\n");
  }
  for (size_t i = 0; i < execs.size(); ++i) {
    EXPECT_EQ(execs[i].Wait(), static_cast<int>(i + 10)) << execs[i].err();
  }
  EXPECT_EQ(Exec(id, {"echo", "new"}).out, "new\n");
  Remove(id);
}

TEST_F(EngineKill, LeavesATerminal) {
  Program program = StartCtr(node(), RunWords({"--rm", "-t"}, Id(), {"sh"}), Terminal());
  // ctr follows the window only once it has told the first size, after the start.
  program.Write("until [ \"$(stty size)\" = '24 80' ]; do sleep 0.05; done; echo one-$((40+1))\n");
  ASSERT_TRUE(program.ReadUntil("one-41")) << program.out();
  Kill();
  program.Write("echo two-$((40+2))\n");
  EXPECT_TRUE(program.ReadUntil("two-42")) << program.out();
  program.Resize(41, 99);
  program.Write("until [ \"$(stty size)\" = '41 99' ]; do sleep 0.05; done; exit 6\n");
  EXPECT_EQ(program.Wait(), 6) << program.out();
}

TEST_F(EngineKill, LosesAndDoublesNoByteOfATerminal) {
  // The shell's own counter goes on while the engine dies three times.
  Program program =
      StartCtr(node(), RunWords({"--rm", "-t"}, Id(), {"seq", "1", "600000"}), Terminal());
  for (int round = 1; round <= 3; ++round) {
    ASSERT_TRUE(program.ReadUntil("\n" + std::to_string(round * 120000) + "\r", kLong));
    Kill();
  }
  EXPECT_EQ(program.Wait(kLong), 0);
  const std::string shown = WithoutReturns(program.out());
  const std::string all = RunProgram({"seq", "1", "600000"}).out;
  EXPECT_TRUE(shown.ends_with(all)) << FirstDifference(all, shown.substr(shown.find("1\n2\n3\n")));
}

TEST_F(EngineKill, LosesAndDoublesNoByteOfAPipe) {
  Program program = StartCtr(node(), RunWords({"--rm"}, Id(), {"seq", "1", "3000000"}), {});
  for (int round = 1; round <= 3; ++round) {
    ASSERT_TRUE(program.ReadUntil("\n" + std::to_string(round * 600000) + "\n", kLong));
    Kill();
  }
  EXPECT_EQ(program.Wait(kLong), 0) << program.err();
  EXPECT_TRUE(program.out() == RunProgram({"seq", "1", "3000000"}).out) << program.out().size();
}

TEST_F(EngineKill, LosesNoByteOfALogger) {
  const std::string path = settings().root + "/" + Id() + ".log";
  const std::string logger =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "e2e_logger";
  const std::string id = Id();
  StartDetached(id,
                {"sh", "-c", "seq 1 1000; until [ -e /go ]; do sleep 0.05; done; seq 1001 2000"},
                {"--log-uri", "binary://" + logger + "?file=" + path});
  ASSERT_TRUE(WaitForText(path, "\n1000\n"));
  Kill();
  // Its exit code says nothing: the container may end, and it with it, before it has.
  Exec(id, {"touch", "/go"});
  ASSERT_TRUE(WaitForText(path, "end\n")) << ReadText(path).size();
  EXPECT_TRUE(ReadText(path) == "begin " + settings().ns + " " + id + "\n" +
                                    RunProgram({"seq", "1", "2000"}).out + "end\n");
  ASSERT_TRUE(WaitForState(id, "STOPPED"));
  Remove(id);
}

TEST_F(EngineKill, KeepsEventsInOrder) {
  Events events(node());
  const std::string id = Id();
  StartDetached(id, {"sleep", "1000"});
  Kill();
  const Output exec = node().Ctr({"tasks", "exec", "--fifo-dir", node().fifo_dir(), "--exec-id",
                                  "one", id, "sh", "-c", "exit 3"});
  EXPECT_EQ(exec.status, 3) << exec.Text();
  Kill();
  ASSERT_EQ(Ctr({"tasks", "kill", "-s", "KILL", id}).status, 0);
  Kill();
  ASSERT_TRUE(WaitForState(id, "STOPPED"));
  Remove(id);
  EXPECT_THAT(
      Events::TopicsOnce(events.Until("/tasks/delete", id)),
      ElementsAre("create", "start", "exec-added", "exec-started", "exit(one)", "exit", "delete"));
}

TEST_F(EngineKill, DuringFiftyRunsLosesNoExitCode) {
  Events events(node());
  constexpr int kCount = 50;
  std::vector<Program> running;
  for (int i = 0; i < kCount; ++i) {
    running.push_back(StartCtr(node(),
                               RunWords({"--rm"}, Id("-" + std::to_string(i)),
                                        {"sh", "-c", "echo up; read code; exit $code"}),
                               Input()));
    if (i % 17 == 16) {
      Kill();
    }
  }
  for (int i = 0; i < kCount; ++i) {
    Program& program = running[static_cast<size_t>(i)];
    ASSERT_TRUE(program.ReadUntil("up\n", kLong))
        << Id("-" + std::to_string(i)) << " is " << FindTask(Id("-" + std::to_string(i))).state
        << "\n"
        << program.err();
  }
  for (int i = 0; i < kCount; ++i) {
    if (i % 20 == 10) {
      Kill();
    }
    running[static_cast<size_t>(i)].Write(std::to_string(i) + "\n");
    running[static_cast<size_t>(i)].Flush();
  }
  Kill();
  for (int i = 0; i < kCount; ++i) {
    Program& program = running[static_cast<size_t>(i)];
    EXPECT_EQ(program.Wait(kLong), i) << program.err();
  }
  for (int i = 0; i < kCount; ++i) {
    EXPECT_THAT(Events::TopicsOnce(events.Until("/tasks/delete", Id("-" + std::to_string(i)))),
                ElementsAre("create", "start", "exit", "delete"));
  }
}

TEST_F(EngineKill, DuringCreateFinishesOrUndoesIt) {
  for (size_t round = 0; round <= kMoments; ++round) {
    // Sockets have no names that a test could know: the one to come is the only one.
    ASSERT_TRUE(Eventually([] { return ListFolder(settings().run_dir + "/s").empty(); }));
    const std::string id = Id("-" + std::to_string(round));
    Program program = StartCtr(node(), RunWords({"--rm"}, id, {"sh", "-c", "exit 4"}), {});
    ASSERT_TRUE(Eventually([&] { return HasCome(round, id, program.pid()); }));
    Kill();
    EXPECT_EQ(program.Wait(), 4) << "moment " << round << ": " << program.err();
  }
}

TEST_F(EngineKill, LeavesAPausedContainerPaused) {
  const std::string id = Id();
  StartDetached(id, {"sleep", "1000"});
  ASSERT_EQ(Ctr({"tasks", "pause", id}).status, 0);
  Kill();
  EXPECT_EQ(FindTask(id).state, "PAUSED");
  EXPECT_EQ(Ctr({"tasks", "resume", id}).status, 0);
  EXPECT_EQ(FindTask(id).state, "RUNNING");
  Remove(id);
}

TEST_F(EngineKill, StillTellsOfMemory) {
  Events events(node());
  const std::string id = Id();
  StartDetached(id, {"sleep", "1000"}, {"--memory-limit", "67108864"});
  Kill();
  Exec(id, TakeMemory(100'000'000));
  EXPECT_FALSE(events.Until("/tasks/oom", id).empty());
  Remove(id);
}

TEST_F(EngineKill, WithContainerdDownTooKeepsTheExitCode) {
  const std::string id = Id();
  StartDetached(id, {"sh", "-c", "trap 'exit 7' TERM; >/ready; while :; do sleep 0.05; done"});
  ASSERT_EQ(Exec(id, {"sh", "-c", "until [ -e /ready ]; do sleep 0.02; done"}).status, 0);
  const pid_t pid = FindTask(id).pid;
  node().KillContainerd();
  Kill();
  kill(pid, SIGTERM);
  ASSERT_TRUE(WaitGone(pid));
  ASSERT_EQ(node().StartContainerd(), "");
  ASSERT_TRUE(WaitForState(id, "STOPPED"));
  const Output removed = Ctr({"tasks", "rm", id});
  EXPECT_NE(removed.err.find("exit code 7"), std::string::npos) << removed.Text();
  EXPECT_EQ(Ctr({"containers", "rm", id}).status, 0);
}

// Fifty containers, by number: every fifth has an exec, every fifth writes more than fits
// into its pipe, every fifth does that on a terminal; the others wait.
class EngineKillInFlight : public EngineKill {
 protected:
  // A machine each is as many as there are kinds: without KVM they take seconds to boot.
  const int count_ = settings().vmm() ? 5 : 50;
  static constexpr char kWaits[] = "echo up; read code; exit $code";
  // Without a terminal there is no echo to switch off.
  static constexpr char kWrites[] =
      "stty -echo 2>/dev/null; echo up; seq 1 200000; read code; exit $code";

  static bool HasExec(int i) { return i % 5 == 0; }

  static bool HasTerminal(int i) { return i % 5 == 2; }

  static bool Writes(int i) { return i % 5 == 1 || HasTerminal(i); }

  std::string IdOf(int i) { return Id("-" + std::to_string(i)); }

  Program& At(int i) { return containers_[static_cast<size_t>(i)]; }

  void StartAll() {
    for (int i = 0; i < count_; ++i) {
      std::vector<std::string> flags = {"--rm"};
      if (HasTerminal(i)) {
        flags.emplace_back("-t");
      }
      containers_.push_back(
          StartCtr(node(), RunWords(flags, IdOf(i), {"sh", "-c", Writes(i) ? kWrites : kWaits}),
                   HasTerminal(i) ? Terminal() : Input()));
    }
    for (int i = 0; i < count_; ++i) {
      ASSERT_TRUE(At(i).ReadUntil("up", kLong)) << IdOf(i) << ": " << At(i).err();
      if (HasExec(i)) {
        execs_.emplace(i, StartCtr(node(), ExecWords({}, IdOf(i), {"sh", "-c", kWaits}), Input()));
      }
    }
    for (auto& [i, exec] : execs_) {
      ASSERT_TRUE(exec.ReadUntil("up", kLong)) << IdOf(i) << ": " << exec.err();
    }
  }

  static void EndWith(Program& program, int code) {
    program.Write(std::to_string(code) + "\n");
    program.Flush();
  }

  std::vector<Program> containers_;
  std::map<int, Program> execs_;
};

TEST_F(EngineKillInFlight, LosesNoExitCodeNoByteNoEventAndNoConnection) {
  Events events(node());
  StartAll();
  // What is not read stays on its way: all that write are in the middle of it.
  const size_t log_before = ReadText(node().log_path()).size();
  Kill();
  for (int i = 0; i < count_; ++i) {
    EXPECT_EQ(FindTask(IdOf(i)).state, "RUNNING");
    if (Writes(i)) {
      EXPECT_TRUE(At(i).ReadUntil("\n100000", kLong)) << IdOf(i);
    }
  }
  Kill();
  EXPECT_EQ(FindTask(IdOf(0)).state, "RUNNING");
  EXPECT_THAT(ReadText(node().log_path()).substr(log_before), Not(HasSubstr("shim disconnected")));
  for (auto& [i, exec] : execs_) {
    EndWith(exec, i + 1);
  }
  Kill();
  for (auto& [i, exec] : execs_) {
    EXPECT_EQ(exec.Wait(kLong), i + 1) << exec.err();
  }
  for (int i = 0; i < count_; ++i) {
    EndWith(At(i), i);
  }
  Kill();
  // What nobody reads for long is given up, so all are read at once.
  std::vector<std::jthread> readers;
  for (Program& container : containers_) {
    readers.emplace_back([&container] { container.Wait(kLong); });
  }
  readers.clear();
  const std::string written = "up\n" + RunProgram({"seq", "1", "200000"}).out;
  for (int i = 0; i < count_; ++i) {
    EXPECT_EQ(At(i).Wait(kLong), i) << At(i).err();
    if (Writes(i)) {
      // On a terminal ctr's own warnings come before it.
      EXPECT_TRUE(WithoutReturns(At(i).out()).ends_with(written)) << At(i).out().size();
    }
    const auto topics = Events::TopicsOnce(events.Until("/tasks/delete", IdOf(i)));
    if (HasExec(i)) {
      EXPECT_THAT(topics, ElementsAre("create", "start", "exec-added", "exec-started",
                                      StartsWith("exit("), "exit", "delete"));
    } else {
      EXPECT_THAT(topics, ElementsAre("create", "start", "exit", "delete"));
    }
  }
}

}  // namespace
}  // namespace gantry::e2e
