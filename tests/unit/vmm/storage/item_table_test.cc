// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/storage/item_table.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"

namespace gantry::vmm {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ItemTableTest : public testing::Test {
 protected:
  ItemTable Open() const { return ItemTable::In(folder_.path() + "/records").value(); }

  static Item Make(ItemTable& table, std::string key) {
    return {.number = table.NewNumber(), .key = std::move(key)};
  }

  static std::vector<uint32_t> Numbers(const std::vector<Item>& items) {
    std::vector<uint32_t> numbers;
    for (const Item& item : items) {
      numbers.push_back(item.number);
    }
    return numbers;
  }

  os::TempDir folder_ = os::TempDir::Create().value();
};

TEST_F(ItemTableTest, ContainersShareWhatIsTheSame) {
  ItemTable table = Open();
  ASSERT_TRUE(table.Add("a", {Make(table, "image"), Make(table, "")}));
  const Item shared = table.Shared(Make(table, "image"));
  const Item own = table.Shared(Make(table, ""));
  EXPECT_EQ(shared.number, 1U);
  EXPECT_EQ(own.number, 4U) << "no number twice";
  ASSERT_TRUE(table.Add("b", {shared, own}));
  EXPECT_THAT(Numbers(table.Own("a")), ElementsAre(2U));
  EXPECT_THAT(Numbers(table.Own("b")), ElementsAre(4U));
  ASSERT_TRUE(table.Remove("a"));
  EXPECT_THAT(Numbers(table.Own("b")), ElementsAre(4U, 1U)) << "the last first";
}

// Between "let go of it" to the guest and its removal nobody may begin to use it.
TEST_F(ItemTableTest, WhatIsLeavingIsNotSharedAnyMore) {
  ItemTable table = Open();
  ASSERT_TRUE(table.Add("a", {Make(table, "volume")}));
  EXPECT_THAT(Numbers(table.Leaving("a")), ElementsAre(1U));
  EXPECT_EQ(table.Shared(Make(table, "volume")).number, 2U);
  EXPECT_THAT(Numbers(table.Leaving("a")), ElementsAre(1U)) << "again";
}

TEST_F(ItemTableTest, IsThereForTheNextEngine) {
  {
    ItemTable table = Open();
    Item item = Make(table, "device");
    item.disk = "/dev/sdz";
    item.read_only = true;
    item.mounts = {{.type = "ext4", .serial = item.serial(), .target = "/x", .options = {"ro"}}};
    item.huge_pages = 7;
    ASSERT_TRUE(table.Add("a", {item}));
  }
  ItemTable table = Open();
  const auto items = table.Of("a");
  ASSERT_EQ(items.size(), 1U);
  EXPECT_EQ(items[0].ToDisk().serial, "gantry1");
  EXPECT_EQ(items[0].ToDisk().path, "/dev/sdz");
  EXPECT_TRUE(items[0].ToDisk().read_only);
  ASSERT_EQ(items[0].mounts.size(), 1U);
  EXPECT_THAT(items[0].mounts[0].options, ElementsAre("ro"));
  EXPECT_EQ(table.HugePages(), 7U);
  EXPECT_EQ(table.NewNumber(), 2U);
}

// U3: leftovers, half records and foreign files.
TEST_F(ItemTableTest, LeavesOutWhatIsNoRecord) {
  {
    ASSERT_TRUE(Open().Add("good", {}));
  }
  const std::string folder = folder_.path() + "/records/";
  ASSERT_TRUE(WriteFile(folder + "half", "\x0a\xff", 0600));
  ASSERT_TRUE(WriteFile(folder + ".good.tmp", "x", 0600));
  ASSERT_TRUE(WriteFile(folder + "no id", "", 0600));
  ItemTable table = Open();
  EXPECT_THAT(table.Containers(), ElementsAre("good"));
  ASSERT_TRUE(table.Add("half", {})) << "its place is free";
}

TEST_F(ItemTableTest, HasALimit) {
  ItemTable table = Open();
  ASSERT_TRUE(table.Add("a", std::vector<Item>(ItemTable::kMostItems)));
  const Status more = table.Add("b", {Item{}});
  EXPECT_EQ(more.error().code, Code::kResourceExhausted);
  EXPECT_THAT(table.Containers(), ElementsAre("a"));
}

TEST_F(ItemTableTest, WhatIsGoneIsGone) {
  ItemTable table = Open();
  EXPECT_THAT(table.Leaving("never"), IsEmpty());
  EXPECT_TRUE(table.Remove("never"));
  ASSERT_TRUE(table.Add("a", {}));
  EXPECT_TRUE(table.Remove("a"));
  EXPECT_TRUE(table.Remove("a"));
  EXPECT_THAT(Open().Containers(), IsEmpty());
}

}  // namespace
}  // namespace gantry::vmm
