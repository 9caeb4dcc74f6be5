// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/cgroup/membership.h>

namespace gantry::cgroup {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

// A node with hierarchies of both versions, and one hierarchy of which a part is mounted.
constexpr std::string_view kMounts =
    "30 23 0:26 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755\n"
    "31 30 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
    "32 30 0:28 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n"
    "33 30 0:31 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "34 30 0:32 /pods/one /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";

std::string DirOf(std::string_view line) {
  const auto memberships = ParseMemberships(line);
  const auto found = memberships.size() == 1
                         ? FindMounted(memberships.front(), mount::ParseMountInfo(kMounts))
                         : std::nullopt;
  return found ? found->dir() : "none";
}

TEST(CgroupMembership, IsALineEach) {
  const auto all = ParseMemberships(
      "4:cpu,cpuacct:/a:b\n"
      "garbage\n"
      "1:name=systemd:/s\n"
      "0::/\n");
  ASSERT_THAT(all, SizeIs(3));
  EXPECT_THAT(all[0].controllers, ElementsAre("cpu", "cpuacct"));
  EXPECT_EQ(all[0].path, "/a:b");
  EXPECT_THAT(all[1].controllers, ElementsAre("name=systemd"));
  EXPECT_TRUE(all[2].unified());
  EXPECT_EQ(all[2].path, "/");
}

TEST(CgroupMembership, IsFoundWhereItIsMounted) {
  EXPECT_EQ(DirOf("4:cpu,cpuacct:/a/b"), "/sys/fs/cgroup/cpu,cpuacct/a/b");
  EXPECT_EQ(DirOf("4:cpuacct:/"), "/sys/fs/cgroup/cpu,cpuacct");
  EXPECT_EQ(DirOf("1:name=systemd:/s"), "/sys/fs/cgroup/systemd/s");
  EXPECT_EQ(DirOf("0::/u"), "/sys/fs/cgroup/unified/u");
  EXPECT_EQ(DirOf("9:pids:/a"), "none");
}

TEST(CgroupMembership, IsNotSeenAboveWhatIsMounted) {
  EXPECT_EQ(DirOf("5:memory:/pods/one"), "/sys/fs/cgroup/memory");
  EXPECT_EQ(DirOf("5:memory:/pods/one/c"), "/sys/fs/cgroup/memory/c");
  EXPECT_EQ(DirOf("5:memory:/pods/oneself"), "none");
  EXPECT_EQ(DirOf("5:memory:/"), "none");
  EXPECT_EQ(DirOf("0::/../above"), "none");
}

TEST(CgroupMembership, OfOneThatIsGoneIsItsName) {
  EXPECT_EQ(DirOf("0::/u (deleted)"), "/sys/fs/cgroup/unified/u");
}

}  // namespace
}  // namespace gantry::cgroup
