// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/memfd.h>
#include <gantry/toolkit/files/bounded_log.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/rights.h>
#include <gantry/toolkit/process/spawn_builder.h>

#include "core/os/spawn.h"
#include "tests/unit/os/spawned.h"

namespace gantry {
namespace {

TEST(RaisedLimit, IsNoMoreThanMayBe) {
  rlimit now{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &now), 0);
  const rlimit less = RaisedLimit(RLIMIT_NOFILE, 16);
  EXPECT_EQ(less.rlim_cur, rlim_t{16});
  EXPECT_EQ(less.rlim_max, rlim_t{16});
  EXPECT_GE(RaisedLimit(RLIMIT_NOFILE, now.rlim_max).rlim_max, now.rlim_max);
}

TEST(WriteOomScore, ChangesTheProcess) {
  auto spawned = os::SpawnProcess({.argv = {"/bin/sleep", "1000"}});
  ASSERT_TRUE(spawned);
  os::Child child(std::move(*spawned));
  const HostPid pid{child.process().pid};
  const std::string file = Format("/proc/{}/oom_score_adj", pid.value);
  EXPECT_TRUE(WriteOomScore(pid, 700));
  EXPECT_EQ(ReadFile(file, 16).value_or(""), "700\n");
  EXPECT_EQ(WriteOomScore(pid, 1001).error().message, "write '" + file + "': EINVAL");
  KillProcess(*OpenPidfd(child.process()));
  child.Wait();
  EXPECT_EQ(WriteOomScore(pid, 700).error().code, Code::kNotFound);
}

TEST(EndProcess, OfNoneIsDone) { EXPECT_TRUE(EndProcess(nullptr, std::chrono::seconds(1))); }

TEST(SpawnBuilder, NumbersItsDescriptorsAsTheyCome) {
  SpawnBuilder builder;
  builder.Add("first");
  EXPECT_EQ(builder.Pass(CreateMemfd("a").value()), 3);
  builder.AddFd("log-fd", CreateMemfd("b").value());
  builder.Add(std::vector<std::string>{"last", "of all"});
  const auto request = builder.Finish("name", CreateMemfd("program").value());
  ASSERT_TRUE(request);
  EXPECT_EQ(request->argv,
            (std::vector<std::string>{"name", "first", "--log-fd=4", "last", "of all"}));
  ASSERT_EQ(request->fds.size(), 2U);
  EXPECT_EQ(request->fds[0].second, 3);
  EXPECT_EQ(request->fds[1].second, 4);
  EXPECT_TRUE(request->program);
}

TEST(BoundedLog, IsFullAtItsLimit) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "needs root";
  }
  constexpr size_t kLimit = 16384;
  const auto log = MakeBoundedLog(kLimit);
  ASSERT_TRUE(log) << log.error().message;
  const std::string page(4096, 'x');
  size_t written = 0;
  for (ssize_t n = 1; n > 0 && written < 4 * kLimit;) {
    n = write(log->get(), page.data(), page.size());
    written += n > 0 ? static_cast<size_t>(n) : 0;
  }
  EXPECT_EQ(errno, ENOSPC);
  EXPECT_EQ(written, kLimit);
  EXPECT_EQ(LastBytes(*log, 3), "xxx");
  EXPECT_EQ(LastBytes(UniqueFd(), 3), "");
}

}  // namespace
}  // namespace gantry
