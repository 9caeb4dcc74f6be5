// SPDX-License-Identifier: Apache-2.0
#include <sys/mount.h>

#include <gtest/gtest.h>

#include <gantry/toolkit/mount/words.h>

namespace gantry::mount {
namespace {

TEST(MountWord, IsOneOfMountOfSetattrToo) {
  const Word* word = FindWord("nosymfollow");

  ASSERT_NE(word, nullptr);
  EXPECT_EQ(word->of, Word::Of::kMount);
  EXPECT_EQ(word->set, static_cast<unsigned long>(MS_NOSYMFOLLOW));
  EXPECT_EQ(word->attributes, (Attributes{MOUNT_ATTR_NOSYMFOLLOW, 0}));
  EXPECT_EQ(FindWord("nosymlinks"), nullptr);
}

TEST(MountWord, OfAFileSystemIsNoMounts) {
  for (const char* name : {"sync", "dirsync", "lazytime", "nomand", "silent", "remount"}) {
    const Word* word = FindWord(name);
    ASSERT_NE(word, nullptr) << name;
    EXPECT_NE(word->of, Word::Of::kMount) << name;
    EXPECT_TRUE(word->attributes.empty()) << name;
  }
}

TEST(MountFlags, AreAttributes) {
  EXPECT_EQ(AttributesOf(MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC),
            uint64_t{MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC});
  EXPECT_EQ(AttributesOf(MS_NOATIME | MS_NODIRATIME | MS_NOSYMFOLLOW),
            uint64_t{MOUNT_ATTR_NOATIME | MOUNT_ATTR_NODIRATIME | MOUNT_ATTR_NOSYMFOLLOW});
  EXPECT_EQ(AttributesOf(MS_BIND | MS_SYNCHRONOUS | MS_RELATIME), 0U);
}

TEST(MountPropagation, IsOneWordForTheTree) {
  ASSERT_NE(FindPropagation("rslave"), nullptr);
  EXPECT_EQ(FindPropagation("rslave")->flags(), static_cast<unsigned long>(MS_SLAVE | MS_REC));
  EXPECT_EQ(FindPropagation("shared")->flags(), static_cast<unsigned long>(MS_SHARED));
  EXPECT_EQ(FindPropagation("rrslave"), nullptr);
}

}  // namespace
}  // namespace gantry::mount
