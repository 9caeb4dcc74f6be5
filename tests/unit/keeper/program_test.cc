// SPDX-License-Identifier: Apache-2.0
//
// gantry-keeper as a program.
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <deque>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/pidfd.h>

#include "core/link/channel.h"
#include "core/os/fs.h"
#include "core/os/process.h"

namespace gantry::keeper {
namespace {

using namespace std::chrono_literals;

class KeeperProgram : public testing::Test {
 protected:
  KeeperProgram() : dir_(*os::TempDir::Create()) {}

  ~KeeperProgram() override {
    for (const auto& child : children_) {
      IgnoreError(SendSignal(child.pidfd.get(), SIGKILL), "it has ended");
      waitpid(child.process.pid, nullptr, 0);
    }
  }

  os::SpawnResult& Start(const std::vector<std::string>& more = {}) {
    os::SpawnRequest request;
    request.argv = {GANTRY_KEEPER, "--run-dir", dir_.path() + "/run", "--engine", "/bin/false"};
    request.argv.insert(request.argv.end(), more.begin(), more.end());
    children_.push_back(*os::SpawnProcess(request));
    return children_.back();
  }

  /// The exit code; -1 if it goes on for 10 s.
  static int CodeOf(const os::SpawnResult& child) {
    pollfd wanted{child.pidfd.get(), POLLIN, 0};
    siginfo_t info{};
    if (poll(&wanted, 1, 10'000) != 1 ||
        waitid(P_PID, static_cast<id_t>(child.process.pid), &info, WEXITED | WNOWAIT) != 0) {
      return -1;
    }
    return info.si_status;
  }

  /// Asks until it listens.
  Result<link::KeeperStatus> Query() {
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    auto socket = ConnectUnix(dir_.path() + "/run/keeper.sock");
    while (!socket && std::chrono::steady_clock::now() < deadline) {
      socket = ConnectUnix(dir_.path() + "/run/keeper.sock");
    }
    GANTRY_TRY(UniqueFd fd, std::move(socket));
    link::BlockingChannel channel(std::move(fd));
    return channel.Ask<link::KeeperStatus>(link::Query{}, deadline);
  }

  os::TempDir dir_;
  std::deque<os::SpawnResult> children_;
};

TEST_F(KeeperProgram, RefusesARunDirectoryOfSomebodyElse) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "only root gives directories away";
  }
  ASSERT_TRUE(os::MakeDirs(dir_.path() + "/run", 0700));
  ASSERT_EQ(chown((dir_.path() + "/run").c_str(), 12345, 0), 0);
  EXPECT_EQ(CodeOf(Start({"--foreground"})), 1);
  EXPECT_FALSE(Exists(dir_.path() + "/run/keeper.sock"));
}

TEST_F(KeeperProgram, IsTheOnlyOneOfItsRunDirectory) {
  const os::SpawnResult& first = Start();
  ASSERT_TRUE(Query());
  EXPECT_EQ(CodeOf(Start()), 1);
  const auto status = Query();
  ASSERT_TRUE(status);
  EXPECT_EQ(status->keeper_pid, first.process.pid);
  EXPECT_THAT(*ReadFile(dir_.path() + "/run/keeper.log", 65536),
              testing::HasSubstr("another keeper runs"));
}

TEST_F(KeeperProgram, ChecksWhetherAnotherRuns) {
  EXPECT_EQ(CodeOf(Start({"--check"})), 0);
  const os::SpawnResult& keeper = Start();
  ASSERT_TRUE(Query());
  EXPECT_EQ(CodeOf(Start({"--check"})), 1);
  EXPECT_FALSE(HasEnded(keeper.pidfd.get()));
}

TEST_F(KeeperProgram, EndsOnSigtermWhenItGuardsNothing) {
  const os::SpawnResult& keeper = Start();
  ASSERT_TRUE(Query());
  ASSERT_TRUE(SendSignal(keeper.pidfd.get(), SIGTERM));
  EXPECT_EQ(CodeOf(keeper), 0);
}

TEST_F(KeeperProgram, DoesNotEndWhileItGuardsSomething) {
  const os::SpawnResult& keeper = Start();
  ASSERT_TRUE(Query());
  link::BlockingChannel channel(*ConnectUnix(dir_.path() + "/run/keeper.sock"));
  link::Announce announce;
  announce.id = "c1";
  announce.ns = "default";
  ASSERT_TRUE(channel.Ask<link::Announced>(announce, std::chrono::steady_clock::now() + 10s));
  ASSERT_TRUE(SendSignal(keeper.pidfd.get(), SIGTERM));
  EXPECT_TRUE(Query());
  EXPECT_FALSE(HasEnded(keeper.pidfd.get()));
}

TEST_F(KeeperProgram, RefusesOptionsItDoesNotKnow) { EXPECT_EQ(CodeOf(Start({"--nope=1"})), 1); }

}  // namespace
}  // namespace gantry::keeper
