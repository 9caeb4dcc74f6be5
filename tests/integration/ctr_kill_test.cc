// SPDX-License-Identifier: Apache-2.0
//
// `ctr task kill`: signals, to the init, to an exec, to all.
#include <filesystem>
#include <sstream>

#include "tests/harness/e2e_test.h"

namespace gantry::e2e {
namespace {

class CtrKill : public E2eTest {
 protected:
  // A foreground `ctr run` of a script, read until it says "up".
  Program StartScript(const std::string& id, const std::string& script) {
    Program program =
        StartCtr(node(), RunWords({"--rm"}, id, {"sh", "-c", script}), Program::Options());
    EXPECT_TRUE(program.ReadUntil("up\n")) << program.err();
    return program;
  }

  static void Kill(const std::string& id, const std::string& signal, const Words& flags = {}) {
    Words words{"tasks", "kill", "-s", signal};
    words.insert(words.end(), flags.begin(), flags.end());
    words.push_back(id);
    const Output killed = Ctr(words);
    EXPECT_EQ(killed.status, 0) << killed.Text();
  }

  /// Of v1's freezer; empty where there is none.
  static std::string FreezerPathOf(const std::string& pid) {
    std::istringstream lines(ReadText("/proc/" + pid + "/cgroup"));
    for (std::string line; std::getline(lines, line);) {
      if (const size_t at = line.find(":freezer:"); at != std::string::npos) {
        return line.substr(at + 9);
      }
    }
    return "";
  }
};

TEST_F(CtrKill, EndsWith137ByKill) {
  const std::string id = Id();
  Program program = StartScript(id, "echo up; sleep 1000");
  Kill(id, "KILL");
  EXPECT_EQ(program.Wait(), 137) << program.err();
}

TEST_F(CtrKill, IsSeenByATrap) {
  const std::string id = Id();
  Program program =
      StartScript(id, "trap 'echo caught; exit 9' TERM; echo up; while :; do sleep 1; done");
  Kill(id, "TERM");
  EXPECT_EQ(program.Wait(), 9) << program.err();
  EXPECT_NE(program.out().find("caught\n"), std::string::npos);
}

TEST_F(CtrKill, TakesAnySignalByNumber) {
  const std::string id = Id();
  Program program = StartScript(
      id, "trap 'echo usr1' USR1; trap 'exit 4' INT; echo up; while :; do sleep 0.1; done");
  Kill(id, "10");
  EXPECT_TRUE(program.ReadUntil("usr1\n")) << program.err();
  Kill(id, "SIGINT");
  EXPECT_EQ(program.Wait(), 4) << program.err();
}

TEST_F(CtrKill, DoesNothingToAnInitThatIgnoresIt) {
  const std::string id = Id();
  Program program = StartScript(id,
                                "trap '' HUP; trap 'echo alive' USR1; echo up; "
                                "while :; do sleep 0.1; done");
  Kill(id, "HUP");
  Kill(id, "USR1");
  EXPECT_TRUE(program.ReadUntil("alive\n")) << program.err();
  Kill(id, "KILL");
  EXPECT_EQ(program.Wait(), 137) << program.err();
}

TEST_F(CtrKill, SaysNotFoundAfterTheEnd) {
  const std::string id = Id();
  StartDetached(id, {"true"});
  ASSERT_TRUE(WaitForState(id, "STOPPED"));
  const Output killed = Ctr({"tasks", "kill", "-s", "KILL", id});
  EXPECT_NE(killed.status, 0);
  EXPECT_NE(killed.err.find("process already finished"), std::string::npos) << killed.Text();
  Remove(id);
}

TEST_F(CtrKill, EndsAnExecAlone) {
  const std::string id = Id();
  StartDetached(id, {"sleep", "1000"});
  const Words words{"tasks", "exec", "--fifo-dir", node().fifo_dir(),         "--exec-id", "victim",
                    id,      "sh",   "-c",         "echo up; exec sleep 1000"};
  Program program = StartCtr(node(), words, {});
  ASSERT_TRUE(program.ReadUntil("up\n")) << program.err();
  Kill(id, "KILL", {"--exec-id", "victim"});
  EXPECT_EQ(program.Wait(), 137) << program.err();
  EXPECT_EQ(FindTask(id).state, "RUNNING");
  Remove(id);
}

TEST_F(CtrKill, ReachesAllProcessesWithAll) {
  const std::string id = Id();
  // Both survive the signal: what kills the init ends all others anyway.
  Program program = StartScript(id,
                                "trap 'echo init' USR1; "
                                "sh -c 'trap \"echo child\" USR1; echo up; "
                                "while :; do sleep 0.05; done' & "
                                "while :; do sleep 0.05; done");
  Kill(id, "USR1", {"--all"});
  EXPECT_TRUE(program.ReadWhile([&] {
    return program.out().find("init\n") != std::string::npos &&
           program.out().find("child\n") != std::string::npos;
  })) << program.out();
  Kill(id, "KILL");
  EXPECT_EQ(program.Wait(), 137) << program.err();
}

TEST_F(CtrKill, IsRefusedForAnUnknownSignal) {
  const std::string id = Id();
  StartDetached(id, {"sleep", "1000"});
  EXPECT_NE(Ctr({"tasks", "kill", "-s", "NOSUCH", id}).status, 0);
  EXPECT_EQ(FindTask(id).state, "RUNNING");
  Remove(id);
}

TEST_F(CtrKill, EndsAPausedContainer) {
  const std::string id = Id();
  StartDetached(id, {"sleep", "1000"});
  ASSERT_EQ(Ctr({"tasks", "pause", id}).status, 0);
  Kill(id, "KILL");
  ASSERT_TRUE(WaitForState(id, "STOPPED"));
  Remove(id);
}

TEST_F(CtrKill, EndsWhatItFrozeBelowItself) {
  // As a container does that may write its cgroup of v1.
  const std::string id = Id();
  StartDetached(id, {"sh", "-c", "sleep 1000 & wait"});
  const std::string init = std::to_string(FindTask(id).pid);
  const std::string freezer = "/sys/fs/cgroup/freezer" + FreezerPathOf(init);
  if (FreezerPathOf(init).size() <= 1 || !std::filesystem::create_directory(freezer + "/in")) {
    Remove(id);
    GTEST_SKIP() << "cgroup v2 lets a frozen process be killed";
  }
  std::string child;
  ASSERT_TRUE(Eventually([&] {
    child = ReadText("/proc/" + init + "/task/" + init + "/children");
    return !child.empty();
  }));
  WriteText(freezer + "/in/cgroup.procs", child);
  WriteText(freezer + "/in/freezer.state", "FROZEN");
  Kill(id, "KILL", {"--all"});
  EXPECT_TRUE(WaitForState(id, "STOPPED"));
  Remove(id);
  EXPECT_FALSE(std::filesystem::exists(freezer));
}

TEST_F(CtrKill, IsDoneByAForcedRemoval) {
  const std::string id = Id();
  StartDetached(id, {"sleep", "1000"});
  const Output removed = Ctr({"tasks", "rm", id});
  EXPECT_NE(removed.err.find("must be stopped"), std::string::npos) << removed.Text();
  const Output forced = Ctr({"tasks", "rm", "-f", id});
  EXPECT_NE(forced.err.find("exit code 137"), std::string::npos) << forced.Text();
  EXPECT_EQ(Ctr({"containers", "rm", id}).status, 0);
}

}  // namespace
}  // namespace gantry::e2e
