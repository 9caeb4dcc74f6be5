// SPDX-License-Identifier: Apache-2.0
//
// Guests outlive containerd and gantry's engine, and how they end meanwhile is not lost.
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include <gmock/gmock.h>

#include "tests/harness/events.h"
#include "tests/harness/wasm_test.h"

namespace gantry::e2e {
namespace {

using testing::HasSubstr;

class WasmRestart : public WasmTest {
 protected:
  void TearDown() override {
    if (!IsSkipped()) {
      std::filesystem::remove_all(Steps());
      EXPECT_TRUE(Eventually([] { return node().Engine().pid != 0; }));
    }
    WasmTest::TearDown();
  }

  static std::string Steps() { return settings().root + "/steps"; }

  /// A guest that ends as `end` says (tests/guests/steps.c) when it is told to.
  static Words Stepping(const std::string& end) { return {Guest("steps"), "/steps", "1", end}; }

  static Words WithSteps(Words flags) {
    std::filesystem::create_directories(Steps());
    flags.insert(flags.end(),
                 {"--mount", "type=bind,src=" + Steps() + ",dst=/steps,options=rbind:ro"});
    return WithGuests(std::move(flags));
  }

  static void LetGo() { WriteText(Steps() + "/1", ""); }

  static void KillEngine() {
    const pid_t engine = node().Engine().pid;
    ASSERT_GT(engine, 0);
    ASSERT_EQ(kill(engine, SIGKILL), 0);
    ASSERT_TRUE(WaitGone(engine));
  }

  static void ExpectServed(const std::string& id, pid_t pid) {
    EXPECT_EQ(FindTask(id).pid, pid);
    EXPECT_EQ(FindTask(id).state, "RUNNING");
    EXPECT_EQ(Exec(id, Tool({"exit", "5"})).status, 5);
    EXPECT_EQ(Exec(id, {"sh", "-c", "exit 6"}).status, 6);
    EXPECT_EQ(Ctr({"tasks", "pause", id}).status, 0);
    EXPECT_EQ(Ctr({"tasks", "resume", id}).status, 0);
    EXPECT_THAT(Ctr({"tasks", "metrics", id}).out, HasSubstr("memory"));
  }

  static void ExpectEndsOfTerm(const std::string& id) {
    Events events(node());
    ASSERT_EQ(Ctr({"tasks", "kill", "-s", "TERM", id}).status, 0);
    const auto seen = events.Until("/tasks/exit", id, id);
    ASSERT_FALSE(seen.empty());
    EXPECT_EQ(seen.back().Field("exit_status"), "143");
  }
};

TEST_F(WasmRestart, OfContainerdLeavesGuestsAndTheirStreams) {
  const std::string id = Id();
  StartDetached(id, Tool({"cat"}), WithGuests({}));
  const pid_t pid = FindTask(id).pid;
  ASSERT_EQ(node().RestartContainerd(), "");
  ExpectServed(id, pid);
  Program::Options options;
  options.input = true;
  Program attached = StartCtr(node(), {"tasks", "attach", id}, options);
  attached.Write("still here\n");
  EXPECT_TRUE(attached.ReadUntil("still here\n")) << attached.err();
  ExpectEndsOfTerm(id);
  EXPECT_EQ(attached.Wait(), 143) << attached.err();
  Remove(id);
}

TEST_F(WasmRestart, OfContainerdKeepsTheCodeOfAGuestThatEndedMeanwhile) {
  const std::map<std::string, std::string> ends = {{"7", "7"}, {"trap", "134"}};
  for (const auto& [end, code] : ends) {
    StartDetached(Id("-" + end), Stepping(end), WithSteps({}));
  }
  std::map<std::string, pid_t> pids;
  for (const auto& [end, code] : ends) {
    pids[end] = FindTask(Id("-" + end)).pid;
    ASSERT_GT(pids[end], 0);
  }
  node().KillContainerd();
  LetGo();
  for (const auto& [end, pid] : pids) {
    ASSERT_TRUE(WaitGone(pid));
  }
  ASSERT_EQ(node().StartContainerd(), "");
  for (const auto& [end, code] : ends) {
    const std::string id = Id("-" + end);
    ASSERT_TRUE(WaitForState(id, "STOPPED"));
    EXPECT_THAT(Ctr({"tasks", "rm", id}).err, HasSubstr("exit code " + code));
    EXPECT_EQ(Ctr({"containers", "rm", id}).status, 0);
  }
}

TEST_F(WasmRestart, OfTheEngineLeavesGuestsAndMakesNewOnes) {
  const std::string id = Id();
  StartDetached(id, Tool({"sleep", "1000000"}), WithGuests({}));
  const pid_t pid = FindTask(id).pid;
  KillEngine();
  ExpectServed(id, pid);
  EXPECT_EQ(RunContainer(WithGuests({"--rm"}), Id("-new"), Tool({"exit", "9"})).status, 9);
  ExpectEndsOfTerm(id);
  Remove(id);
}

/// Nothing of an earlier engine's, nor of its cache, is needed.
TEST_F(WasmRestart, OfTheEngineWithoutItsCacheCompilesAgain) {
  EXPECT_EQ(RunGuest({"tool", "exit", "3"}).status, 3);
  const std::string id = Id("-runs");
  StartDetached(id, Tool({"sleep", "1000000"}), WithGuests({}));
  std::filesystem::remove_all(settings().root + "/wasm");
  KillEngine();
  EXPECT_EQ(RunGuest({"tool", "exit", "4"}).status, 4);
  EXPECT_EQ(Exec(id, Tool({"exit", "5"})).status, 5);
  EXPECT_FALSE(ListFolder(settings().root + "/wasm").empty());
  Remove(id);
}

/// The engine stands still while they end, and never hears of it: the next one is told.
TEST_F(WasmRestart, OfTheEngineKeepsTheCodesOfAllThatEndedMeanwhile) {
  const std::vector<std::pair<std::string, int>> ends = {
      {"0", 0}, {"7", 7}, {"255", 255}, {"trap", 134}};
  std::vector<Program> running;
  std::vector<pid_t> pids;
  for (const auto& [end, code] : ends) {
    const std::string id = Id("-" + end);
    running.push_back(
        StartCtr(node(), RunWords(WithSteps({"--rm"}), id, Stepping(end)), Program::Options()));
    ASSERT_TRUE(running.back().ReadUntil("ready\n")) << running.back().err();
    pids.push_back(FindTask(id).pid);
  }
  for (const auto& [signal, code] : {std::pair("TERM", 143), {"KILL", 137}}) {
    const std::string id = Id(std::string("-") + signal);
    running.push_back(StartGuest(id, {"tool", "sleep", "1000000"}, "sleeps\n"));
    pids.push_back(FindTask(id).pid);
  }
  ASSERT_FALSE(std::ranges::contains(pids, 0));
  const pid_t engine = node().Engine().pid;
  ASSERT_GT(engine, 0);
  EXPECT_EQ(kill(engine, SIGSTOP), 0);
  LetGo();
  kill(pids[pids.size() - 2], SIGTERM);
  kill(pids.back(), SIGKILL);
  for (const pid_t pid : pids) {
    EXPECT_TRUE(WaitGone(pid));
  }
  EXPECT_EQ(kill(engine, SIGKILL), 0);
  for (size_t i = 0; i < ends.size(); ++i) {
    EXPECT_EQ(running[i].Wait(), ends[i].second) << running[i].err();
  }
  EXPECT_EQ(running[ends.size()].Wait(), 143) << running[ends.size()].err();
  EXPECT_EQ(running.back().Wait(), 137) << running.back().err();
}

}  // namespace
}  // namespace gantry::e2e
