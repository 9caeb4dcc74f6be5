// SPDX-License-Identifier: Apache-2.0
//
// A new engine in the place of one that works, or that stands still: what runs goes on,
// and a new one that cannot take it up changes nothing.
#include <signal.h>

#include <filesystem>

#include <gmock/gmock.h>

#include "tests/contract/harness/contract_test.h"
#include "tests/integration/harness/host.h"

namespace gantry::contract {
namespace {

using ::testing::HasSubstr;

/// Keeper and engine of this test alone, whose configuration it changes.
class UpgradeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!node_.unavailable().empty()) {
      GTEST_SKIP() << node_.unavailable();
    }
    NodeAdditions more;
    more.sections = "hang: {after: 1s}\n";
    ASSERT_EQ(node_.Start(more), "");
  }

  std::string ConfigPath() const { return node_.root() + "/gantry.yaml"; }

  /// A container that waits for its stdin.
  Box& Running() {
    EXPECT_TRUE(box_.Announce());
    EXPECT_OK(box_.Create());
    EXPECT_OK(box_.Start());
    return box_;
  }

  void ExpectAllIsWell(Box& box) {
    const auto state = box.State();
    EXPECT_OK(state);
    EXPECT_EQ(state ? state->status() : 0, 2) << "RUNNING";
    EXPECT_OK(box.Exec("x", {"sh", "-c", "exit 5"}));
    EXPECT_OK(box.Start("x"));
    const auto ended = box.Wait("x");
    EXPECT_OK(ended);
    EXPECT_EQ(ended ? ended->exit_status() : 0, 5U);
    EXPECT_OK(box.Delete("x"));
  }

  Node node_;
  Box box_{node_, "one", "runc", BoxOptions{.args = {"sleep", "1000"}}};
};

TEST_F(UpgradeTest, TakesUpWhatRuns) {
  Box& box = Running();
  const pid_t old = node_.Engine();
  const auto upgraded = node_.Upgrade();
  ASSERT_OK(upgraded);
  EXPECT_NE(*upgraded, old);
  EXPECT_EQ(node_.Engine(), *upgraded);
  EXPECT_TRUE(e2e::WaitGone(old));
  ExpectAllIsWell(box);
  EXPECT_OK(box.Finish());
}

TEST_F(UpgradeTest, IsRefusedWithAWrongConfiguration) {
  Box& box = Running();
  const pid_t old = node_.Engine();
  e2e::WriteText(ConfigPath(), "version: 1\nhandler: {}\n");
  const auto refused = node_.Upgrade();
  EXPECT_CODE(refused, kFailedPrecondition);
  EXPECT_THAT(MessageOf(refused), HasSubstr("the new engine refuses"));
  EXPECT_THAT(MessageOf(refused), HasSubstr("gantry.yaml:2:1': handler: unknown key"));
  EXPECT_EQ(node_.Engine(), old);
  ExpectAllIsWell(box);
  EXPECT_OK(box.Finish());
}

TEST_F(UpgradeTest, IsRefusedWithoutTheBackendOfWhatRuns) {
  Box& box = Running();
  const pid_t old = node_.Engine();
  e2e::WriteText(ConfigPath(),
                 "version: 1\nbackends:\n  runc: {path: '" + node_.root() + "/none.so'}\n");
  const auto refused = node_.Upgrade();
  EXPECT_CODE(refused, kFailedPrecondition);
  EXPECT_THAT(MessageOf(refused), HasSubstr("backend 'runc', which 'one' runs with"));
  EXPECT_THAT(MessageOf(refused), HasSubstr("none.so"));
  EXPECT_EQ(node_.Engine(), old);
  ExpectAllIsWell(box);
  EXPECT_OK(box.Finish());
}

TEST_F(UpgradeTest, IsRefusedWithAProgramThatIsNoEngine) {
  Box& box = Running();
  const pid_t old = node_.Engine();
  for (const char* program : {"/none/gantryd", "/bin/true"}) {
    EXPECT_CODE(node_.Upgrade(program), kFailedPrecondition) << program;
  }
  EXPECT_EQ(node_.Engine(), old);
  ExpectAllIsWell(box);
  EXPECT_OK(box.Finish());
}

TEST_F(UpgradeTest, ReplacesAnEngineThatStandsStill) {
  Box& box = Running();
  const pid_t old = node_.Engine();
  ASSERT_TRUE(Signal(old, SIGSTOP));
  // The next one answers this.
  ExpectAllIsWell(box);
  EXPECT_TRUE(e2e::WaitGone(old));
  const auto keeper = node_.Query();
  ASSERT_OK(keeper);
  EXPECT_EQ(keeper->engine_hangs, 1U);
  EXPECT_OK(box.Finish());
}

}  // namespace
}  // namespace gantry::contract
