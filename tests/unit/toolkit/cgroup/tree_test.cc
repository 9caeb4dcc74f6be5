// SPDX-License-Identifier: Apache-2.0
//
// Signals to the processes of one cgroup, which is a folder with a list of them here.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/cgroup/tree.h>
#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"
#include "tests/unit/os/few_descriptors.h"

namespace gantry::cgroup {
namespace {

using testing::ElementsAre;

class CgroupTreeTest : public testing::Test {
 protected:
  CgroupTreeTest() : root_(*os::TempDir::Create()), dir_(*os::OpenDirectory(root_.path())) {}

  ~CgroupTreeTest() override {
    for (const pid_t pid : children_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }

  // One that waits for a signal.
  pid_t Child() {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::pause();
      ::_exit(0);
    }
    children_.push_back(pid);
    return pid;
  }

  // That it has ended, and by which signal.
  int SignalOf(pid_t pid) {
    int status = 0;
    EXPECT_EQ(::waitpid(pid, &status, 0), pid);
    std::erase(children_, pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }

  void List(const std::vector<pid_t>& pids) {
    std::string text;
    for (const pid_t pid : pids) {
      text += std::to_string(pid) + "\n";
    }
    ASSERT_TRUE(WriteFile(root_.path() + "/cgroup.procs", text, 0600));
  }

  os::TempDir root_;
  UniqueFd dir_;
  std::vector<pid_t> children_;
};

TEST_F(CgroupTreeTest, SignalsWhatIsListedButNeverItself) {
  const pid_t child = Child();
  List({::getpid(), 1, child});
  std::vector<Signalled> signalled;
  ASSERT_TRUE(SignalAt(dir_.get(), SIGKILL, signalled));
  ASSERT_EQ(signalled.size(), 1U);
  EXPECT_EQ(signalled.front().pid, child);
  EXPECT_EQ(SignalOf(child), SIGKILL);
}

TEST_F(CgroupTreeTest, SignalsWhatItCanOpenWhereDescriptorsAreFew) {
  const std::vector<pid_t> pids = {Child(), Child(), Child(), Child()};
  List(pids);
  std::vector<Signalled> signalled;
  {
    // Three are left.
    const test::FewDescriptors few(200);
    std::vector<UniqueFd> taken;
    do {
      taken.emplace_back(::dup(dir_.get()));
    } while (taken.back());
    ASSERT_GE(taken.size(), 4U);
    taken.resize(taken.size() - 4);
    const Status sent = SignalAt(dir_.get(), SIGKILL, signalled);
    ASSERT_FALSE(sent);
    EXPECT_EQ(sent.error().sys_errno, EMFILE);
  }
  ASSERT_EQ(signalled.size(), 1U) << "the others are for the list";
  EXPECT_EQ(signalled.front().pid, pids[0]);
  ASSERT_TRUE(SignalAt(dir_.get(), SIGKILL, signalled));
  for (const pid_t pid : pids) {
    EXPECT_EQ(SignalOf(pid), SIGKILL);
  }
}

TEST_F(CgroupTreeTest, RemovesWhatItCanBesideWhatIsBusy) {
  // A folder with a file in it stands for a cgroup that is busy.
  ASSERT_TRUE(os::MakeDirs(root_.path() + "/c/busy", 0755));
  ASSERT_TRUE(os::MakeDirs(root_.path() + "/c/a/b", 0755));
  ASSERT_TRUE(os::MakeDirs(root_.path() + "/c/z", 0755));
  ASSERT_TRUE(WriteFile(root_.path() + "/c/busy/file", "", 0600));
  const Status removed = RemoveOnce(root_.path() + "/c");
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().sys_errno, ENOTEMPTY);
  EXPECT_THAT(SubDirs(root_.path() + "/c"), ElementsAre("busy"));
  EXPECT_TRUE(RemoveOnce(root_.path() + "/none"));
}

}  // namespace
}  // namespace gantry::cgroup
