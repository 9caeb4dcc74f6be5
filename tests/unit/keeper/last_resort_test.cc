// SPDX-License-Identifier: Apache-2.0
//
// Killing without the engine, by process and by a cgroup directory made of files.
#include "core/keeper/last_resort.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include <gmock/gmock.h>

#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/pidfd.h>

#include "core/os/fs.h"
#include "core/os/process.h"
#include "tests/unit/toolkit/files/deep_tree.h"

namespace gantry::keeper {
namespace {

class LastResortTest : public testing::Test {
 protected:
  LastResortTest() {
    os::SpawnRequest request;
    request.argv = {"/bin/sleep", "60"};
    child_ = *os::SpawnProcess(request);
  }

  ~LastResortTest() override {
    IgnoreError(SendSignal(child_.pidfd.get(), SIGKILL), "the test has killed it");
    waitpid(child_.process.pid, nullptr, 0);
  }

  link::ProcessRef Ref() const { return {child_.process.pid, child_.process.start_time}; }

  bool Alive() const { return !HasEnded(child_.pidfd.get()); }

  os::SpawnResult child_;
};

/// What it has died of. 0: it does not die.
int EndOf(const os::SpawnResult& child) {
  constexpr int kEndsWithinMs = 60'000;
  pollfd ended{child.pidfd.get(), POLLIN, 0};
  if (poll(&ended, 1, kEndsWithinMs) != 1) {
    return 0;
  }
  siginfo_t info{};
  EXPECT_EQ(waitid(P_PID, static_cast<id_t>(child.process.pid), &info, WEXITED | WNOWAIT), 0);
  return info.si_status;
}

TEST_F(LastResortTest, KillsInitAndThenFindsNothing) {
  link::LastResort last_resort;
  last_resort.init = Ref();
  EXPECT_TRUE(KillOnce(last_resort));
  EXPECT_EQ(EndOf(child_), SIGKILL);
  EXPECT_FALSE(KillOnce(last_resort));
}

TEST_F(LastResortTest, SparesALaterProcessOfTheSamePid) {
  link::LastResort last_resort;
  last_resort.init = Ref();
  last_resort.init->start_time += 1;
  last_resort.processes = {{child_.process.pid, 0}};
  EXPECT_FALSE(KillOnce(last_resort));
  EXPECT_TRUE(Alive());
}

TEST_F(LastResortTest, KillsWhatACgroupListsAndThatBelowIt) {
  const auto dir = os::TempDir::Create();
  ASSERT_TRUE(os::MakeDirs(dir->path() + "/sub", 0700));
  std::ofstream(dir->path() + "/cgroup.procs");
  std::ofstream(dir->path() + "/sub/cgroup.procs") << child_.process.pid << "\n";
  link::LastResort last_resort;
  last_resort.cgroup_dirs = {dir->path(), dir->path() + "/absent"};
  EXPECT_TRUE(KillOnce(last_resort));
  EXPECT_EQ(EndOf(child_), SIGKILL);
}

TEST_F(LastResortTest, KillsWhatADeepCgroupLists) {
  const ScratchTree dir;
  std::ofstream(dir / "cgroup.procs");
  MakeDeepTree(dir.path(), [&](int below, bool deepest) {
    PutFile(below, "cgroup.procs", deepest ? std::to_string(child_.process.pid) : "");
  });
  link::LastResort last_resort;
  last_resort.cgroup_dirs = {dir.path()};
  OnSmallStack([&] { EXPECT_TRUE(KillOnce(last_resort)); });
  EXPECT_EQ(EndOf(child_), SIGKILL);
}

TEST(CleanOnce, RemovesADeepCgroup) {
  // A fake one: its own file keeps the topmost directory.
  const ScratchTree dir;
  const std::string cgroup = dir / "c";
  ASSERT_TRUE(os::MakeDirs(cgroup, 0700));
  std::ofstream(cgroup + "/cgroup.procs");
  MakeDeepTree(cgroup);
  link::LastResort last_resort;
  last_resort.cgroup_dirs = {cgroup};
  OnSmallStack([&] { EXPECT_FALSE(CleanOnce(last_resort)); });
  EXPECT_FALSE(Exists(cgroup + "/d"));
}

TEST_F(LastResortTest, EndsWhatIsFrozenBelow) {
  const std::string dir = "/sys/fs/cgroup/freezer/gantry-test-" + RandomName(8);
  if (!Exists("/sys/fs/cgroup/freezer/cgroup.procs") || !os::MakeDirs(dir + "/below", 0755)) {
    GTEST_SKIP() << "needs root and cgroup v1";
  }
  EXPECT_TRUE(WriteExisting(dir + "/below/cgroup.procs", std::to_string(child_.process.pid)));
  EXPECT_TRUE(WriteExisting(dir + "/below/freezer.state", "FROZEN"));
  link::LastResort last_resort;
  last_resort.cgroup_dirs = {dir};
  EXPECT_TRUE(KillOnce(last_resort));
  EXPECT_EQ(EndOf(child_), SIGKILL);
  IgnoreError(WriteExisting(dir + "/below/freezer.state", "THAWED"), "it has been");
  waitpid(child_.process.pid, nullptr, 0);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while ((KillOnce(last_resort) || CleanOnce(last_resort)) &&
         std::chrono::steady_clock::now() < deadline) {
  }
  EXPECT_FALSE(Exists(dir));
}

TEST_F(LastResortTest, SparesWhatHasThePidOfOneThatLeftTheCgroup) {
  const auto dir = os::TempDir::Create();
  // A list that is another one when it is read again.
  const std::string procs = dir->path() + "/cgroup.procs";
  ASSERT_EQ(mkfifo(procs.c_str(), 0600), 0);
  const UniqueFd reader(open(procs.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  {
    const UniqueFd writer(open(procs.c_str(), O_WRONLY | O_CLOEXEC));
    const std::string line = std::to_string(child_.process.pid) + "\n";
    ASSERT_EQ(write(writer.get(), line.data(), line.size()), static_cast<ssize_t>(line.size()));
  }
  link::LastResort last_resort;
  last_resort.cgroup_dirs = {dir->path()};
  EXPECT_FALSE(KillOnce(last_resort));
  EXPECT_TRUE(Alive());
}

TEST_F(LastResortTest, SparesTheRootOfATree) {
  const auto dir = os::TempDir::Create();
  std::ofstream(dir->path() + "/cgroup.procs") << child_.process.pid << "\n";
  std::ofstream(dir->path() + "/release_agent");
  link::LastResort last_resort;
  last_resort.cgroup_dirs = {dir->path(), "relative", ""};
  EXPECT_FALSE(KillOnce(last_resort));
  EXPECT_TRUE(Alive());
}

TEST(CleanOnce, RemovesStateAndNothingNearTheRoot) {
  const auto dir = os::TempDir::Create();
  const std::string state = dir->path() + "/state";
  ASSERT_TRUE(os::MakeDirs(state + "/c1", 0700));
  std::ofstream(state + "/c1/status") << "x";
  link::LastResort last_resort;
  last_resort.state_dirs = {state + "/c1", "relative", dir->path(), state + "/.."};
  EXPECT_FALSE(CleanOnce(last_resort));
  EXPECT_FALSE(Exists(state + "/c1"));
  EXPECT_TRUE(Exists(state));
}

TEST_F(LastResortTest, EndsARealCgroup) {
  const std::string root =
      Exists("/sys/fs/cgroup/cgroup.procs") ? "/sys/fs/cgroup" : "/sys/fs/cgroup/pids";
  const std::string dir = root + "/gantry-test-" + RandomName(8);
  if (!os::MakeDirs(dir + "/below", 0755) ||
      !WriteExisting(dir + "/below/cgroup.procs", std::to_string(child_.process.pid))) {
    rmdir((dir + "/below").c_str());
    rmdir(dir.c_str());
    GTEST_SKIP() << "cgroups cannot be made here";
  }
  link::LastResort last_resort;
  last_resort.cgroup_dirs = {dir};
  EXPECT_TRUE(KillOnce(last_resort));
  EXPECT_EQ(EndOf(child_), SIGKILL);
  waitpid(child_.process.pid, nullptr, 0);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while ((KillOnce(last_resort) || CleanOnce(last_resort)) &&
         std::chrono::steady_clock::now() < deadline) {
  }
  EXPECT_FALSE(Exists(dir));
}

TEST_F(LastResortTest, SparesItself) {
  const auto self = Identify({getpid()});
  link::LastResort last_resort;
  last_resort.init = {self->pid, self->start_time};
  EXPECT_FALSE(KillOnce(last_resort));
}

}  // namespace
}  // namespace gantry::keeper
