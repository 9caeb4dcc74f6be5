// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/cgroup/move.h>
#include <gantry/toolkit/descriptors/pipe.h>
#include <gantry/toolkit/files/files.h>

#include "core/os/spawn.h"
#include "tests/unit/os/spawned.h"

namespace gantry::cgroup {
namespace {

using testing::IsSupersetOf;

/// A cgroup of the test's, of either version.
class CgroupMove : public testing::Test {
 protected:
  void SetUp() override {
    const std::string mount = "/sys/fs/cgroup";
    const std::string top = Exists(mount + "/cgroup.controllers") ? mount : mount + "/pids";
    dir_ = Format("{}/gantry-move-{}", top, getpid());
    if (mkdir(dir_.c_str(), 0755) != 0) {
      dir_.clear();
      GTEST_SKIP() << "no cgroup can be made below " << top;
    }
  }

  void TearDown() override {
    if (dir_.empty()) {
      return;
    }
    KillAll();
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (rmdir(dir_.c_str()) != 0 && std::chrono::steady_clock::now() < until) {
    }
  }

  void KillAll() const {
    for (const int32_t pid : Members()) {
      kill(pid, SIGKILL);
    }
  }

  std::vector<int32_t> Members() const {
    std::vector<int32_t> pids;
    std::istringstream lines(ReadFile(dir_ + "/cgroup.procs", 65536).value_or(""));
    for (int32_t pid = 0; lines >> pid;) {
      pids.push_back(pid);
    }
    return pids;
  }

  std::string dir_;
};

TEST_F(CgroupMove, TakesAllThatItHasStarted) {
  auto out = MakeBlockingPipe();
  ASSERT_TRUE(out);
  os::SpawnRequest request;
  request.argv = {"/bin/sh", "-c",
                  "sleep 1000 & echo $!; sh -c 'sleep 1001 & echo $!; wait' & echo $!; wait"};
  request.env = {"PATH=/usr/bin:/bin"};
  request.descriptors.push_back({.fd = out->second.get(), .target = 1});
  auto spawned = os::SpawnProcess(request);
  ASSERT_TRUE(spawned) << spawned.error().message;
  const os::Child parent(std::move(*spawned));
  out->second.reset();
  std::vector<int32_t> started = {parent.process().pid};
  std::string text;
  for (char c = 0; std::ranges::count(text, '\n') < 3 && read(out->first.get(), &c, 1) == 1;) {
    text += c;
  }
  std::istringstream lines(text);
  for (int32_t pid = 0; lines >> pid;) {
    started.push_back(pid);
  }
  ASSERT_EQ(started.size(), 4U);
  const Status moved = MoveIntoCgroups({parent.process().pid}, {dir_});
  ASSERT_TRUE(moved) << moved.error().message;
  EXPECT_THAT(Members(), IsSupersetOf(started));
}

TEST_F(CgroupMove, SaysThatAProcessHasEnded) {
  auto spawned = os::SpawnProcess({.argv = {"/bin/true"}});
  ASSERT_TRUE(spawned) << spawned.error().message;
  os::Child child(std::move(*spawned));
  const pid_t pid = child.process().pid;
  EXPECT_EQ(child.Wait(), 0U);
  const Status moved = MoveIntoCgroups({pid}, {dir_});
  ASSERT_FALSE(moved);
  EXPECT_EQ(moved.error().code, Code::kNotFound);
}

TEST_F(CgroupMove, DoesNothingWithoutCgroups) { EXPECT_TRUE(MoveIntoCgroups({1}, {})); }

}  // namespace
}  // namespace gantry::cgroup
