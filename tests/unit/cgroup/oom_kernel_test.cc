// SPDX-License-Identifier: Apache-2.0
//
// What is told where the kernel's memory ran out in a cgroup of v1.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <memory>

#include <gtest/gtest.h>

#include <gantry/toolkit/cgroup/statistics.h>
#include <gantry/unique_fd.h>

#include "core/async/loop.h"
#include "core/cgroup/oom_watch.h"
#include "tests/unit/toolkit/cgroup/kernel_cgroup.h"

namespace gantry::cgroup {
namespace {

using os::kBound;

// A child in `cgroup` that wants more memory than it may have, once told to.
class GreedyProcess {
 public:
  explicit GreedyProcess(const Cgroup& cgroup) {
    int fds[2];
    EXPECT_EQ(pipe(fds), 0);
    pid_ = fork();
    if (pid_ == 0) {
      char go = 0;
      close(fds[1]);
      if (read(fds[0], &go, 1) == 1) {
        constexpr size_t kSize = 256 << 20;
        void* memory = mmap(nullptr, kSize, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (memory != MAP_FAILED) {
          memset(memory, 1, kSize);
        }
      }
      _exit(0);
    }
    close(fds[0]);
    go_.reset(fds[1]);
    EXPECT_TRUE(cgroup.AddProcess(pid_));
  }

  int Run() {
    EXPECT_EQ(write(go_.get(), "x", 1), 1);
    int status = 0;
    waitpid(pid_, &status, 0);
    return status;
  }

 private:
  UniqueFd go_;
  pid_t pid_ = -1;
};

/// A cgroup of 8 MiB, and who watches over it.
class KernelOomWatch : public KernelCgroup {
 protected:
  void WatchLittleMemory() {
    CgroupResources limits;
    limits.memory = {.limit_bytes = 8 << 20, .reservation_bytes = {}, .swap_bytes = {}};
    ASSERT_TRUE(cgroup_.Update(limits));
    auto opened = OomWatch::Open(cgroup_);
    ASSERT_TRUE(opened) << opened.error().message;
    watch_ = *std::move(opened);
    watch_->Begin(loop_, [this] { ++reports_; });
  }

  async::Loop loop_;
  std::unique_ptr<OomWatch> watch_;
  int reports_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Trees, KernelOomWatch, testing::Values(false), TreeName);

TEST_P(KernelOomWatch, ReportsThatMemoryRanOutOnce) {
  ASSERT_NO_FATAL_FAILURE(WatchLittleMemory());
  EXPECT_FALSE(watch_->CheckNow());
  GreedyProcess process(cgroup_);

  const int status = process.Run();

  if (!WIFSIGNALED(status)) {
    GTEST_SKIP() << "the kernel found memory after all";
  }
  EXPECT_TRUE(watch_->CheckNow());
  EXPECT_FALSE(watch_->CheckNow());
  while (loop_.RunOnce(std::chrono::milliseconds(0))) {
  }
  EXPECT_EQ(reports_, 1);
  EXPECT_GE(ReadOomKills(cgroup_).value_or(0), 1U);
}

TEST_P(KernelOomWatch, ReportsThroughTheLoopAndNotTheEndOfTheCgroup) {
  ASSERT_NO_FATAL_FAILURE(WatchLittleMemory());
  GreedyProcess process(cgroup_);
  if (!WIFSIGNALED(process.Run())) {
    GTEST_SKIP() << "the kernel found memory after all";
  }

  loop_.RunOnce(kBound);
  EXPECT_EQ(reports_, 1);
  ASSERT_TRUE(cgroup_.Remove(kBound));
  EXPECT_TRUE(loop_.RunOnce(kBound)) << "of the removal";

  EXPECT_EQ(reports_, 1);
  EXPECT_FALSE(watch_->CheckAfterKill());
}

TEST_P(KernelOomWatch, ReportsWhatItSeesOnlyWhenTheCgroupIsGone) {
  ASSERT_NO_FATAL_FAILURE(WatchLittleMemory());
  GreedyProcess process(cgroup_);
  if (!WIFSIGNALED(process.Run())) {
    GTEST_SKIP() << "the kernel found memory after all";
  }
  ASSERT_TRUE(cgroup_.Remove(kBound));

  // The kernel tells of the removal a little later.
  while (loop_.watches() > 0 && loop_.RunOnce(kBound)) {
  }

  watch_->CheckAfterKill();
  EXPECT_EQ(reports_, 1);
}

}  // namespace
}  // namespace gantry::cgroup
