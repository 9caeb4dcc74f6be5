// SPDX-License-Identifier: Apache-2.0
//
// Changes of a cgroup's file, on the loop.
#include <sys/epoll.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <gantry/toolkit/cgroup/cgroup.h>
#include <gantry/toolkit/cgroup/counters.h>
#include <gantry/toolkit/cgroup/notify.h>
#include <gantry/toolkit/files/files.h>

#include "core/async/loop.h"
#include "tests/unit/cgroup/fake_cgroupfs.h"

namespace gantry::cgroup {
namespace {

using os::IdleProcess;
using os::kBound;

TEST(CgroupNotify, TellsChangesOfTheKernelsFilesThroughEpoll) {
  const auto node = CgroupHierarchy::OfNode();
  if (geteuid() != 0 || !node || node->unified().mount_dir.empty()) {
    GTEST_SKIP() << "needs root and cgroup v2";
  }
  const auto cgroup = Cgroup::Create(*CgroupHierarchy::At(node->unified().mount_dir),
                                     "/gantry-test-" + RandomName(12));
  ASSERT_TRUE(cgroup) << cgroup.error().message;
  auto notify = CgroupNotify::Open(cgroup->unified().dir() + "/cgroup.events");
  ASSERT_TRUE(notify);
  EXPECT_EQ(notify->poll_events(), static_cast<uint32_t>(EPOLLPRI));
  EXPECT_EQ(FieldIn(notify->Read().value_or(""), "populated"), 0);
  async::Loop loop;
  int calls = 0;
  const async::WatchId watch =
      loop.Watch(notify->poll_fd(), notify->poll_events(), [&](uint32_t) { ++calls; });
  EXPECT_FALSE(loop.RunOnce(std::chrono::milliseconds(0)));

  {
    const IdleProcess process;
    ASSERT_TRUE(cgroup->AddProcess(process.pid()));
    while (calls == 0 && loop.RunOnce(kBound)) {
    }
    EXPECT_EQ(FieldIn(notify->Read().value_or(""), "populated"), 1);
  }
  EXPECT_EQ(calls, 1);
  ASSERT_TRUE(cgroup->Remove(kBound));
  EXPECT_FALSE(notify->Read());
  loop.Unwatch(watch);
}

}  // namespace
}  // namespace gantry::cgroup
