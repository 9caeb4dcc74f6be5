// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/image/erofs_image.h>

#include "tests/unit/toolkit/image/erofs_reader.h"

namespace gantry {
namespace {

using testing::ElementsAre;
using testing::Key;
using testing::Optional;

constexpr uint8_t kFileType = 1;
constexpr uint8_t kDirectoryType = 2;

TEST(ErofsImage, AsksNoMoreOfAReaderThanTheFirstReleaseHad) {
  const auto image = ErofsImage({{"a", {S_IFREG | 0644, "x"}}, {"d", {S_IFDIR | 0755, {}}}});
  ASSERT_TRUE(image) << image.error().message;
  const ErofsSuperblock super = ErofsReader(*image).superblock();
  EXPECT_EQ(super.magic, 0xe0f5e1e2U);
  EXPECT_EQ(super.blkszbits, 12);
  EXPECT_EQ(super.feature_compat, 0U);
  EXPECT_EQ(super.feature_incompat, 0U);
  EXPECT_EQ(super.sb_extslots, 0);
  EXPECT_EQ(super.inos, 3U);
  EXPECT_EQ(super.meta_blkaddr, 0U);
  EXPECT_EQ(size_t{super.blocks} * 4096, image->size());
}

TEST(ErofsImage, HoldsFilesAsTheyWereGiven) {
  const std::string large(3 * 4096 + 5, 'l');
  const auto image = ErofsImage({{"page", {S_IFREG | 0644, large.substr(0, 4096)}},
                                 {"empty", {S_IFREG | 0600, {}}},
                                 {"large", {S_IFREG | S_ISUID | 0755, large}}});
  ASSERT_TRUE(image) << image.error().message;
  const ErofsReader reader(*image);
  const auto root = reader.List(*reader.Inode(reader.superblock().root_nid));
  ASSERT_TRUE(root);
  ASSERT_THAT(*root, ElementsAre(Key("."), Key(".."), Key("empty"), Key("large"), Key("page")));
  EXPECT_EQ(root->at("large").file_type, kFileType);
  const auto inode = reader.Inode(root->at("large").nid);
  ASSERT_TRUE(inode);
  EXPECT_EQ(inode->mode, S_IFREG | S_ISUID | 0755);
  EXPECT_EQ(inode->nlink, 1);
  EXPECT_EQ(inode->uid, 0);
  EXPECT_THAT(reader.Content(*inode), Optional(large));
  EXPECT_THAT(reader.Content(*reader.Inode(root->at("page").nid)),
              Optional(std::string(4096, 'l')));
  EXPECT_THAT(reader.Content(*reader.Inode(root->at("empty").nid)), Optional(std::string()));
}

TEST(ErofsImage, HoldsEmptyDirectories) {
  const auto image = ErofsImage({{"tmp", {S_IFDIR | S_ISVTX | 0777, {}}}});
  ASSERT_TRUE(image) << image.error().message;
  const ErofsReader reader(*image);
  const uint64_t root_nid = reader.superblock().root_nid;
  const auto root_inode = reader.Inode(root_nid);
  ASSERT_TRUE(root_inode);
  EXPECT_EQ(root_inode->mode, S_IFDIR | 0755);
  EXPECT_EQ(root_inode->nlink, 3);
  const auto root = reader.List(*root_inode);
  ASSERT_TRUE(root);
  EXPECT_EQ(root->at(".").nid, root_nid);
  EXPECT_EQ(root->at("..").nid, root_nid);
  EXPECT_EQ(root->at("tmp").file_type, kDirectoryType);
  const auto inode = reader.Inode(root->at("tmp").nid);
  ASSERT_TRUE(inode);
  EXPECT_EQ(inode->mode, S_IFDIR | S_ISVTX | 0777);
  EXPECT_EQ(inode->nlink, 2);
  const auto names = reader.List(*inode);
  ASSERT_TRUE(names);
  ASSERT_THAT(*names, ElementsAre(Key("."), Key("..")));
  EXPECT_EQ(names->at(".").nid, root->at("tmp").nid);
  EXPECT_EQ(names->at("..").nid, root_nid);
}

TEST(ErofsImage, HoldsAsManyAsOneBlockOfInodesDoes) {
  std::map<std::string, ErofsEntry> entries;
  for (int i = 0; i < 91; ++i) {
    entries[std::to_string(1000 + i)] = {S_IFREG | 0644, "x"};
  }
  const auto image = ErofsImage(entries);
  ASSERT_TRUE(image) << image.error().message;
  const ErofsReader reader(*image);
  const auto root = reader.List(*reader.Inode(reader.superblock().root_nid));
  ASSERT_TRUE(root);
  EXPECT_EQ(root->size(), 93U);
  EXPECT_THAT(reader.Content(*reader.Inode(root->at("1090").nid)), Optional(std::string("x")));
  entries["one more"] = {S_IFREG | 0644, {}};
  EXPECT_EQ(ErofsImage(entries).error().code, Code::kInvalidArgument);
}

TEST(ErofsImage, RefusesNamesThatDoNotFit) {
  std::map<std::string, ErofsEntry> entries;
  for (char c = 'a'; c <= 'q'; ++c) {
    entries[std::string(255, c)] = {S_IFREG | 0644, {}};
  }
  EXPECT_EQ(ErofsImage(entries).error().code, Code::kInvalidArgument);
  entries.erase(std::string(255, 'a'));
  entries.erase(std::string(255, 'b'));
  EXPECT_TRUE(ErofsImage(entries));
}

TEST(ErofsImage, RefusesWhatIsNoEntry) {
  const ErofsEntry file = {S_IFREG | 0644, {}};
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string("-"), std::string("a/b"),
        std::string("a\0b", 3), std::string(256, 'n')}) {
    EXPECT_EQ(ErofsImage({{name, file}}).error().code, Code::kInvalidArgument) << name;
  }
  EXPECT_EQ(ErofsImage({{"link", {S_IFLNK | 0777, "to"}}}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(ErofsImage({{"d", {S_IFDIR | 0755, "x"}}}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(ErofsImage({{"none", {0644, {}}}}).error().code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace gantry
