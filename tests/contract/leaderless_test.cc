// SPDX-License-Identifier: Apache-2.0
//
// Processes whose first thread has ended: /proc has them as zombies, and the cgroup is not
// empty until their other threads have ended.
#include <signal.h>

#include <cstdlib>
#include <filesystem>

#include "tests/contract/harness/contract_test.h"
#include "tests/harness/host.h"

namespace gantry::contract {
namespace {

/// Keeper and engine of this test alone: the processes of the backend runc are the host's.
class Leaderless : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!node_.unavailable().empty()) {
      GTEST_SKIP() << node_.unavailable();
    }
    ASSERT_EQ(node_.Start(), "");
    const std::filesystem::path programs =
        std::filesystem::read_symlink("/proc/self/exe").parent_path();
    std::filesystem::copy_file(programs / "contract_leaderless",
                               node_.rootfs() + "/bin/leaderless");
  }

  /// Its init is given back.
  static pid_t Run(Box& box) {
    EXPECT_TRUE(box.Announce());
    EXPECT_OK(box.Create());
    return static_cast<pid_t>(Got(box.Start()).pid());
  }

  /// Its first thread has ended.
  static ::testing::AssertionResult IsLeaderless(pid_t pid) {
    std::string stat;
    const bool is = e2e::Eventually([&] {
      stat = e2e::ReadText("/proc/" + std::to_string(pid) + "/stat");
      const size_t name_end = stat.rfind(')');
      return name_end != std::string::npos && stat.substr(name_end, 3) == ") Z";
    });
    return is ? ::testing::AssertionSuccess()
              : ::testing::AssertionFailure() << pid << " is not: " << stat;
  }

  Node node_;
};

TEST_F(Leaderless, AnInitIsKilledAndDeleted) {
  Box box(node_, "one", "runc", {.args = {"leaderless"}});
  const pid_t init = Run(box);
  ASSERT_TRUE(IsLeaderless(init));
  EXPECT_EQ(Got(box.State()).status(), pb::RUNNING);
  ASSERT_OK(box.Kill(SIGKILL));
  EXPECT_EQ(Got(box.Wait()).exit_status(), 137U);
  EXPECT_TRUE(e2e::WaitGone(init));
  EXPECT_OK(box.Delete());
  EXPECT_OK(box.Finish());
}

TEST_F(Leaderless, AnExecIsKilledAndDeleted) {
  Box box(node_, "one", "runc");
  Run(box);
  ASSERT_OK(box.Exec("x", {"leaderless"}));
  const auto exec = static_cast<pid_t>(Got(box.Start("x")).pid());
  ASSERT_TRUE(IsLeaderless(exec));
  EXPECT_EQ(Got(box.State("x")).status(), pb::RUNNING);
  ASSERT_OK(box.Kill(SIGKILL, "x"));
  EXPECT_EQ(Got(box.Wait("x")).exit_status(), 137U);
  EXPECT_TRUE(e2e::WaitGone(exec));
  EXPECT_OK(box.Delete("x"));
  EXPECT_OK(box.Finish());
}

// In the host's pid namespace, where no init takes it along: it is in the cgroup, and
// nobody's child who waits for it.
TEST_F(Leaderless, WhatAnInitLeavesIsKilledWithItsContainer) {
  const Json namespaces = {{{"type", "ipc"}}, {{"type", "uts"}}, {{"type", "mount"}}};
  Box box(node_, "one", "runc",
          {.args = {"sh", "-c", "leaderless & echo $! >/tmp/left; exec sleep 1000"},
           .spec = {{"linux", {{"namespaces", namespaces}}}}});
  Run(box);
  pid_t left = 0;
  ASSERT_TRUE(e2e::Eventually([&] {
    const std::string text = e2e::ReadText(node_.rootfs() + "/tmp/left");
    left = text.ends_with("\n") ? std::atoi(text.c_str()) : 0;
    return left > 0;
  }));
  ASSERT_TRUE(IsLeaderless(left));
  ASSERT_OK(box.Kill(SIGKILL));
  EXPECT_EQ(Got(box.Wait()).exit_status(), 137U);
  EXPECT_OK(box.Delete());
  EXPECT_TRUE(e2e::WaitGone(left));
  EXPECT_OK(box.Finish());
}

}  // namespace
}  // namespace gantry::contract
