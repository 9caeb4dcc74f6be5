// SPDX-License-Identifier: Apache-2.0
//
// A container's processes have containerd's resource limits, which its shim has announced, and
// not the keeper's: its init, an exec, and an exec after another engine or keeper has come.
#include <signal.h>
#include <sys/resource.h>

#include <string>

#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"
#include "tests/contract/harness/contract_test.h"
#include "tests/harness/host.h"

namespace gantry::contract {
namespace {

/// A keeper and an engine of this test alone, whose own limits are others.
class RlimitsTest : public ::testing::Test {
 protected:
  static constexpr rlim_t kCore = 4096;
  static constexpr rlim_t kProcesses = 12345;

  void SetUp() override {
    if (!node_.unavailable().empty()) {
      GTEST_SKIP() << node_.unavailable();
    }
    node_.SetRlimits({{RLIMIT_CORE, kCore, 2 * kCore}, {RLIMIT_NPROC, kProcesses, kProcesses}});
    ASSERT_EQ(node_.Start(), "");
  }

  static void ExpectTheShims(pid_t pid) {
    ASSERT_GT(pid, 0);
    rlimit limit{};
    ASSERT_EQ(prlimit(pid, RLIMIT_CORE, nullptr, &limit), 0);
    EXPECT_EQ(limit.rlim_cur, kCore);
    EXPECT_EQ(limit.rlim_max, 2 * kCore);
    ASSERT_EQ(prlimit(pid, RLIMIT_NPROC, nullptr, &limit), 0);
    EXPECT_EQ(limit.rlim_cur, kProcesses);
  }

  static void ExpectTheShimsOfAnExec(const Box& box, const std::string& exec) {
    ASSERT_OK(box.Exec(exec, {"sleep", "1000"}));
    const auto started = box.Start(exec);
    ASSERT_OK(started);
    ExpectTheShims(static_cast<pid_t>(started->pid()));
  }

  Node node_;
};

TEST_F(RlimitsTest, AreThoseOfContainerdForAllProcesses) {
  Box box(node_, "one", "runc", BoxOptions{.args = {"sleep", "1000"}});
  ASSERT_TRUE(box.Announce());
  const auto created = box.Create();
  ASSERT_OK(created);
  ASSERT_OK(box.Start());
  ExpectTheShims(static_cast<pid_t>(created->pid()));
  ExpectTheShimsOfAnExec(box, "x1");
  node_.KillEngine();
  ExpectTheShimsOfAnExec(box, "x2");
  const auto program = ReadLink("/proc/" + std::to_string(node_.keeper()) + "/exe");
  ASSERT_OK(program);
  ASSERT_OK(node_.UpgradeKeeper(*program));
  ExpectTheShimsOfAnExec(box, "x3");
  EXPECT_OK(box.Kill(SIGKILL));
  EXPECT_OK(box.Finish());
}

}  // namespace
}  // namespace gantry::contract
