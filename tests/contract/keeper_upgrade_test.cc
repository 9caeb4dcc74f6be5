// SPDX-License-Identifier: Apache-2.0
//
// The keeper becomes another program while everything goes on: the engine keeps its
// link, containerd its connections, and no exit is lost.
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <vector>

#include <gmock/gmock.h>

#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"
#include "tests/contract/harness/contract_test.h"
#include "tests/harness/host.h"

namespace gantry::contract {
namespace {

using ::testing::HasSubstr;

/// A keeper and an engine of this test alone.
class KeeperUpgradeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!node_.unavailable().empty()) {
      GTEST_SKIP() << node_.unavailable();
    }
    ASSERT_EQ(node_.Start(), "");
    const auto program = ReadLink("/proc/" + std::to_string(node_.keeper()) + "/exe");
    ASSERT_TRUE(program);
    program_ = *program;
  }

  Box MakeBox(const std::string& id) {
    return Box(node_, id, "runc", BoxOptions{.args = {"sleep", "1000"}});
  }

  /// A container that runs.
  Box Running(const std::string& id) {
    Box box = MakeBox(id);
    EXPECT_TRUE(box.Announce());
    EXPECT_OK(box.Create());
    EXPECT_OK(box.Start());
    return box;
  }

  Node node_;
  std::string program_;
};

TEST_F(KeeperUpgradeTest, NobodyNotices) {
  Box box = Running("one");
  const pid_t keeper = node_.keeper();
  const pid_t engine = node_.Engine();
  auto end = std::async(std::launch::async, [&] { return box.Wait(); });
  EXPECT_OK(box.Exec("x", {"sh", "-c", "exit 5"}));
  ASSERT_OK(node_.UpgradeKeeper(program_));
  EXPECT_EQ(node_.keeper(), keeper);
  EXPECT_EQ(node_.Engine(), engine);
  EXPECT_OK(box.Start("x"));
  const auto ended = box.Wait("x");
  EXPECT_OK(ended);
  EXPECT_EQ(ended ? ended->exit_status() : 0, 5U);
  EXPECT_OK(box.Delete("x"));
  ASSERT_OK(node_.UpgradeKeeper(program_));
  EXPECT_OK(box.Kill(SIGKILL));
  const auto killed = end.get();
  EXPECT_OK(killed);
  EXPECT_EQ(killed ? killed->exit_status() : 0, 137U);
  EXPECT_OK(box.Finish());
}

TEST_F(KeeperUpgradeTest, WhileContainersComeAndGo) {
  constexpr int kClients = 4;
  constexpr int kLives = 8;
  std::vector<std::future<void>> clients;
  for (int client = 0; client < kClients; ++client) {
    clients.push_back(std::async(std::launch::async, [&, client] {
      for (int life = 0; life < kLives; ++life) {
        Box box = Running("c" + std::to_string(client) + "-" + std::to_string(life));
        EXPECT_OK(box.Kill(SIGKILL));
        const auto ended = box.Wait();
        EXPECT_OK(ended);
        EXPECT_EQ(ended ? ended->exit_status() : 0, 137U);
        EXPECT_OK(box.Finish());
      }
    }));
  }
  uint64_t upgrades = 0;
  const auto all_done = [&] {
    return std::ranges::all_of(clients, [](const auto& client) {
      return client.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    });
  };
  do {
    ASSERT_OK(node_.UpgradeKeeper(program_));
    ++upgrades;
  } while (!all_done());
  const auto status = node_.Query();
  ASSERT_OK(status);
  EXPECT_EQ(status->keeper_upgrades, upgrades);
  EXPECT_EQ(status->engine_starts, 1U) << "the engine is the same all the time";
  EXPECT_TRUE(status->instances.empty());
}

TEST_F(KeeperUpgradeTest, AnEngineThatDiesAfterwardsIsReplaced) {
  Box box = Running("one");
  ASSERT_OK(node_.UpgradeKeeper(program_));
  node_.KillEngine();
  const auto state = box.State();
  EXPECT_OK(state);
  EXPECT_EQ(state ? state->status() : 0, 2) << "RUNNING";
  ASSERT_OK(node_.Upgrade());
  EXPECT_OK(box.Exec("x", {"true"}));
  EXPECT_OK(box.Start("x"));
  EXPECT_OK(box.Wait("x"));
  EXPECT_OK(box.Delete("x"));
  EXPECT_OK(box.Finish());
}

TEST_F(KeeperUpgradeTest, AProgramThatIsNoKeeperChangesNothing) {
  Box box = Running("one");
  for (const std::string program : {"/bin/true", "/none/gantry-keeper"}) {
    const auto refused = node_.UpgradeKeeper(program);
    EXPECT_CODE(refused, kFailedPrecondition) << program;
    EXPECT_THAT(MessageOf(refused), HasSubstr(program));
  }
  EXPECT_OK(box.State());
  EXPECT_OK(box.Finish());
}

}  // namespace
}  // namespace gantry::contract
