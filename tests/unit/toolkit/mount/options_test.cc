// SPDX-License-Identifier: Apache-2.0

#include <sys/mount.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/mount/id_map.h>
#include <gantry/toolkit/mount/mount.h>
#include <gantry/toolkit/mount/mount_info.h>
#include <gantry/toolkit/mount/options.h>
#include <gantry/toolkit/mount/overlay.h>
#include <gantry/toolkit/mount/unmount.h>

namespace gantry::mount {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST(MountOptions, TakesFlagsFromDataApart) {
  const auto options = ParseMountOptions({"ro", "nosuid", "index=off", "rbind", "lowerdir=/a:/b"});

  ASSERT_TRUE(options);
  EXPECT_EQ(options->flags, MS_RDONLY | MS_NOSUID | MS_BIND | MS_REC);
  EXPECT_EQ(options->JoinedData(), "index=off,lowerdir=/a:/b");
  EXPECT_EQ(options->propagation, 0U);
}

TEST(MountOptions, LetsLaterWordsWin) {
  const auto options = ParseMountOptions({"ro", "nodev", "noatime", "rw", "dev", "relatime"});

  ASSERT_TRUE(options);
  EXPECT_EQ(options->flags, static_cast<unsigned long>(MS_RELATIME));
}

TEST(MountOptions, KnowsPropagation) {
  const auto options = ParseMountOptions({"bind", "rslave"});

  ASSERT_TRUE(options);
  EXPECT_EQ(options->flags, static_cast<unsigned long>(MS_BIND));
  EXPECT_EQ(options->propagation, MS_SLAVE | MS_REC);
}

TEST(MountOptions, TakesDirectIoForLoopDevicesOnly) {
  const auto loop = ParseMountOptions({"direct-io", "loop"});
  const auto other = ParseMountOptions({"direct-io"});

  ASSERT_TRUE(loop);
  EXPECT_TRUE(loop->loop && loop->direct_io);
  EXPECT_TRUE(loop->data.empty());
  ASSERT_TRUE(other);
  EXPECT_THAT(other->data, ElementsAre("direct-io"));
}

TEST(MountOptions, RefusesWordsOfTheMountManager) {
  const auto options = ParseMountOptions({"ro", "X-containerd.mkfs.size=1G"});

  ASSERT_FALSE(options);
  EXPECT_EQ(options.error().code, Code::kInvalidArgument);
  EXPECT_THAT(options.error().message, HasSubstr("X-containerd.mkfs.size=1G"));
}

TEST(MountOptions, RefusesOneIdMapAlone) {
  EXPECT_FALSE(ParseMountOptions({"uidmap=0:1000:1"}));
  EXPECT_TRUE(ParseMountOptions({"uidmap=0:1000:1", "gidmap=0:1000:1"}));
}

TEST(IdMappings, AreParsed) {
  const auto ranges = ParseIdMappings("0:100000:65536,65536:4000000000:1");

  ASSERT_TRUE(ranges);
  ASSERT_EQ(ranges->size(), 2U);
  EXPECT_EQ((*ranges)[0].host_id, 100000U);
  EXPECT_EQ((*ranges)[1].container_id, 65536U);
  EXPECT_EQ((*ranges)[1].host_id, 4000000000U);
}

TEST(IdMappings, RefuseWhatIsNone) {
  for (const char* text :
       {"", "0", "0:1", "0:1:", "a:1:1", "0:1:1,", "0:-1:1", "0:1:99999999999"}) {
    EXPECT_FALSE(ParseIdMappings(text)) << text;
  }
}

TEST(Overlay, SplitsLowerDirs) {
  EXPECT_THAT(SplitLowerDirs("/a:/b\\:c::/d"),
              ElementsAre(Pair("/a", false), Pair("/b:c", false), Pair("/d", true)));
  EXPECT_THAT(SplitLowerDirs(""), ElementsAre());
}

TEST(Overlay, FindsTheCommonDirectory) {
  EXPECT_EQ(CommonDirectory({"/s/10/fs", "/s/11/fs", "/s/1/fs"}), "/s/");
  EXPECT_EQ(CommonDirectory({"/s/10/fs"}), "/s/10/");
  EXPECT_EQ(CommonDirectory({"/a", "/b"}), "");
  EXPECT_EQ(CommonDirectory({}), "");
}

TEST(MountInfo, IsParsedWithItsEscapes) {
  const auto mounts = ParseMountInfo(
      "36 35 98:0 /mnt1 /mnt\\0402\\134x rw,noatime master:1 shared:2 - ext3 /dev/root "
      "rw,errors=continue\n"
      "37 36 0:5 / /sys rw - sysfs sysfs rw\n"
      "broken line\n");

  ASSERT_EQ(mounts.size(), 2U);
  EXPECT_EQ(mounts[0].id, 36U);
  EXPECT_EQ(mounts[0].parent_id, 35U);
  EXPECT_EQ(mounts[0].root, "/mnt1");
  EXPECT_EQ(mounts[0].path, "/mnt 2\\x");
  EXPECT_EQ(mounts[0].type, "ext3");
  EXPECT_EQ(mounts[0].source, "/dev/root");
  EXPECT_EQ(mounts[0].super_options, "rw,errors=continue");
  EXPECT_EQ(mounts[1].path, "/sys");
}

}  // namespace
}  // namespace gantry::mount
