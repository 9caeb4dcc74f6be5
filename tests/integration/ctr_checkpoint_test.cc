// SPDX-License-Identifier: Apache-2.0
//
// Checkpoint and restore, by criu or a sentry; and what is said where there is no criu.
#include <filesystem>

#include "tests/harness/e2e_test.h"

namespace gantry::e2e {
namespace {

/// Counts in its memory, and shows it in a file.
const Words kCounts{"sh", "-c", "i=0; while :; do i=$((i+1)); echo $i > /count; sleep 0.05; done"};

class CtrCheckpoint : public E2eTest {
 protected:
  static bool HasCriu() { return RunProgram({"sh", "-c", "command -v criu"}).status == 0; }

  /// Why nothing can be checkpointed here; empty: it can.
  static std::string WhyNot() {
    if (!HasCriu()) {
      return "criu is not installed";
    }
    const Output checked = RunProgram({"criu", "check"});
    return checked.status == 0 ? "" : "criu check: " + checked.Text();
  }

  int Count(const std::string& id) {
    int count = 0;
    Eventually([&] {
      count = std::atoi(Exec(id, {"cat", "/count"}).out.c_str());
      return count > 0;
    });
    return count;
  }

  /// Saves a running container, removes it, and lets it go on. `streams`: flags for
  /// ctr; what the restored one writes goes nowhere.
  void GoOn(Words streams) {
    if (!settings().gvisor()) {
      if (const std::string reason = WhyNot(); !reason.empty()) {
        GTEST_SKIP() << reason;
      }
      // criu saves no network namespace with devices in it, a sentry no network of the node's.
      streams.emplace_back("--net-host");
    }
    const std::string id = Id();
    const std::string image = "checkpoint/" + id;
    StartDetached(id, kCounts, streams);
    EXPECT_TRUE(Eventually([&] { return Count(id) > 20; }));
    const Output saved = Ctr({"containers", "checkpoint", "--rw", "--image", "--task", id, image});
    ASSERT_EQ(saved.status, 0) << saved.Text();
    EXPECT_EQ(FindTask(id).state, "RUNNING");
    Remove(id);
    const Output restored = Ctr({"containers", "restore", "--rw", "--live", id, image});
    EXPECT_EQ(restored.status, 0) << restored.Text();
    EXPECT_EQ(FindTask(id).state, "RUNNING");
    const int then = Count(id);
    EXPECT_GT(then, 20);
    EXPECT_TRUE(Eventually([&] { return Count(id) > then; }));
    Remove(id);
    Ctr({"images", "rm", image});
  }
};

TEST_F(CtrCheckpoint, GoesOnWhereItWas) { GoOn({}); }

TEST_F(CtrCheckpoint, GoesOnWithoutStreams) { GoOn({"--null-io"}); }

TEST_F(CtrCheckpoint, SaysWhatCriuCouldNotSave) {
  if (const std::string reason = WhyNot(); !reason.empty()) {
    GTEST_SKIP() << reason;
  }
  const std::string id = Id();
  StartDetached(id, {"sh", "-c", "unshare -u sh -c 'touch /there; sleep 1000' & wait"},
                {"--net-host", "--cap-add", "CAP_SYS_ADMIN"});
  EXPECT_TRUE(Eventually([&] { return Exec(id, {"test", "-e", "/there"}).status == 0; }));
  const Output refused = Ctr({"tasks", "checkpoint", id});
  EXPECT_NE(refused.status, 0);
  EXPECT_NE(refused.err.find("criu: Can't dump nested uts namespace"), std::string::npos)
      << refused.Text();
  EXPECT_EQ(FindTask(id).state, "RUNNING");
  Remove(id);
}

TEST_F(CtrCheckpoint, SaysThatCriuIsNotThere) {
  if (HasCriu()) {
    GTEST_SKIP() << "criu is installed";
  }
  const std::string id = Id();
  StartDetached(id, {"sleep", "1000"});
  const Output refused = Ctr({"tasks", "checkpoint", id});
  EXPECT_NE(refused.status, 0);
  EXPECT_NE(refused.err.find("install the package criu"), std::string::npos) << refused.Text();
  EXPECT_EQ(FindTask(id).state, "RUNNING");
  Remove(id);
}

}  // namespace
}  // namespace gantry::e2e
