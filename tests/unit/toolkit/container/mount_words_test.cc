// SPDX-License-Identifier: Apache-2.0
#include "core/toolkit/container/mount_words.h"

#include <sys/mount.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>

#include "core/toolkit/container/spec_mount.h"

namespace gantry::container {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

MountWords Read(std::vector<std::string> options, const std::string& type = "tmpfs") {
  oci::SpecMount mount;
  mount.type = type;
  mount.options = std::move(options);
  auto words = ReadMountWords(mount);
  EXPECT_TRUE(words) << words.error().message;
  return words ? *words : MountWords();
}

std::string ErrorOf(std::vector<std::string> options, const std::string& type) {
  oci::SpecMount mount;
  mount.type = type;
  mount.options = std::move(options);
  const auto words = ReadMountWords(mount);
  return words ? "none" : words.error().message;
}

struct Case {
  const char* word;
  uint64_t set;
  uint64_t clear;
};

class AttributeWordTest : public testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(
    Words, AttributeWordTest,
    testing::Values(
        Case{"ro", MOUNT_ATTR_RDONLY, 0}, Case{"rw", 0, MOUNT_ATTR_RDONLY},
        Case{"nosuid", MOUNT_ATTR_NOSUID, 0}, Case{"suid", 0, MOUNT_ATTR_NOSUID},
        Case{"nodev", MOUNT_ATTR_NODEV, 0}, Case{"dev", 0, MOUNT_ATTR_NODEV},
        Case{"noexec", MOUNT_ATTR_NOEXEC, 0}, Case{"exec", 0, MOUNT_ATTR_NOEXEC},
        Case{"nodiratime", MOUNT_ATTR_NODIRATIME, 0}, Case{"diratime", 0, MOUNT_ATTR_NODIRATIME},
        Case{"noatime", MOUNT_ATTR_NOATIME, MOUNT_ATTR__ATIME}, Case{"atime", 0, MOUNT_ATTR__ATIME},
        Case{"relatime", 0, MOUNT_ATTR__ATIME}, Case{"norelatime", 0, MOUNT_ATTR__ATIME},
        Case{"strictatime", MOUNT_ATTR_STRICTATIME, MOUNT_ATTR__ATIME},
        Case{"nostrictatime", 0, MOUNT_ATTR__ATIME}, Case{"nosymfollow", MOUNT_ATTR_NOSYMFOLLOW, 0},
        Case{"symfollow", 0, MOUNT_ATTR_NOSYMFOLLOW}),
    [](const auto& word) { return word.param.word; });

TEST_P(AttributeWordTest, IsTheMounts) {
  const MountWords words = Read({GetParam().word});

  EXPECT_EQ(words.top.set, GetParam().set);
  EXPECT_EQ(words.top.clear, GetParam().clear);
  EXPECT_TRUE(words.tree.empty());
  EXPECT_THAT(words.data, IsEmpty());
}

TEST_P(AttributeWordTest, IsTheTreesWithAnR) {
  const MountWords words = Read({Format("r{}", GetParam().word)});

  EXPECT_EQ(words.tree.set, GetParam().set);
  EXPECT_EQ(words.tree.clear, GetParam().clear);
  EXPECT_TRUE(words.top.empty());
  EXPECT_THAT(words.data, IsEmpty());
}

TEST(MountWordsTest, LaterWordsWin) {
  EXPECT_EQ(Read({"ro", "rw"}).top.set, 0U);
  EXPECT_EQ(Read({"ro", "rw"}).top.clear, uint64_t{MOUNT_ATTR_RDONLY});
  EXPECT_EQ(Read({"rw", "ro"}).top.clear, 0U);
  EXPECT_EQ(Read({"noatime", "strictatime"}).top.set, uint64_t{MOUNT_ATTR_STRICTATIME});
  EXPECT_EQ(Read({"noatime", "relatime", "nosuid"}).top.set, uint64_t{MOUNT_ATTR_NOSUID});
  EXPECT_EQ(Read({"noatime", "strictatime"}).top.clear, uint64_t{MOUNT_ATTR__ATIME});
}

TEST(MountWordsTest, BindsAreBindsByTypeOrByWord) {
  EXPECT_TRUE(Read({}, "bind").bind);
  EXPECT_FALSE(Read({}, "bind").recursive);
  EXPECT_TRUE(Read({"rbind"}, "none").recursive);
  EXPECT_TRUE(Read({"rbind"}, "bind").recursive);
  EXPECT_FALSE(Read({"nosuid"}).bind);
}

TEST(MountWordsTest, PropagationIsInOrder) {
  const MountWords words = Read({"rslave", "shared"}, "bind");

  ASSERT_EQ(words.propagation.size(), 2U);
  EXPECT_EQ(words.propagation[0].type, static_cast<unsigned long>(MS_SLAVE));
  EXPECT_TRUE(words.propagation[0].recursive);
  EXPECT_EQ(words.propagation[1].type, static_cast<unsigned long>(MS_SHARED));
  EXPECT_FALSE(words.propagation[1].recursive);
}

TEST(MountWordsTest, RestIsTheFileSystems) {
  const MountWords words = Read({"defaults", "sync", "size=64k", "mode=755", "nosuid", "silent"});

  EXPECT_THAT(words.general, ElementsAre("sync"));
  EXPECT_THAT(words.data, ElementsAre("size=64k", "mode=755"));
}

TEST(MountWordsTest, TellsWhatCannotBe) {
  EXPECT_THAT(ErrorOf({"rbind", "zise=1"}, "bind"), HasSubstr("option 'zise=1'"));
  EXPECT_THAT(ErrorOf({"tmpcopyup"}, "proc"), HasSubstr("'tmpcopyup'"));
}

TEST(CleanPathTest, IsAbsoluteAndHasNoDots) {
  EXPECT_EQ(CleanPath("/proc"), "/proc");
  EXPECT_EQ(CleanPath("proc//./sys/"), "/proc/sys");
  EXPECT_EQ(CleanPath("/a/../proc"), "/proc");
  EXPECT_EQ(CleanPath("/../../.."), "/");
  EXPECT_EQ(CleanPath(""), "/");
}

}  // namespace
}  // namespace gantry::container
