// SPDX-License-Identifier: Apache-2.0
//
// Files of a guest that sees none of the node's: a VMM without virtiofs.
#include <gmock/gmock.h>

#include <gantry/toolkit/files/files.h>

#include "plugins/vmm/storage/arrangement.h"
#include "tests/unit/vmm/storage/storage_fixture.h"

namespace gantry::vmm {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;

/// Its root is a disk, which the fixture's containers have not: of an image.
class StorageCopiesTest : public StorageFixture {
 protected:
  StorageCopiesTest() {
    traits_ = {.disks = true, .file_systems = false, .guest_rescans = true};
    Start();
  }

  std::string NewFile(const std::string& name, const std::string& content) {
    std::string path = folder_.path() + "/" + name;
    EXPECT_TRUE(WriteFile(path, content, 0640));
    return path;
  }

  Result<ContainerStorage> AddWith(const std::string& id, const std::string& mounts) {
    return AddOnImage(Container(id, mounts));
  }
};

TEST_F(StorageCopiesTest, AFileThatAPodHasIsGivenByItsContent) {
  const std::string hosts = NewFile("hosts", "127.0.0.1 localhost\n");
  const std::string secret = NewFile("secret", "s");
  const auto added = AddWith(
      "a", BindOf(hosts, "/etc/hosts") + "," + BindOf(secret, "/secret", R"("rbind","ro")"));
  ASSERT_TRUE(added) << added.error().message;
  ASSERT_THAT(added->files, SizeIs(2));
  EXPECT_EQ(added->files[0].content, "127.0.0.1 localhost\n");
  EXPECT_EQ(added->files[0].mode, 0640U);
  EXPECT_EQ(added->files[0].path, SourceOf(*added, 0));
  EXPECT_EQ(added->files[1].content, "s");
  const auto other = AddWith("b", BindOf(hosts, "/etc/hosts"));
  ASSERT_TRUE(other);
  EXPECT_NE(other->files[0].path, added->files[0].path) << "each has its own";
  EXPECT_THAT(storage_->DetachOf(Id("a")).targets, testing::Contains(added->files[0].path));
}

TEST_F(StorageCopiesTest, WhatWouldBeLostIsRefused) {
  const std::string data = NewFile("data", "x");
  for (const std::string& mount : {BindOf(data, "/data"), BindOf(NewFolder("folder"), "/folder"),
                                   BindOf(folder_.path(), "/ro", R"("rbind","ro")")}) {
    const auto added = AddWith("a", mount);
    ASSERT_FALSE(added);
    EXPECT_EQ(added.error().code, Code::kFailedPrecondition);
    EXPECT_THAT(added.error().message, AllOf(HasSubstr("no virtiofs"), HasSubstr("block device")));
  }
}

TEST_F(StorageCopiesTest, AllOfThemHaveABound) {
  const std::string half = NewFile("half", std::string(Arranger::kMostCopied / 2, 'x'));
  const std::string mount = BindOf(half, "/a", R"("rbind","ro")");
  EXPECT_TRUE(AddWith("a", mount + "," + BindOf(half, "/b", R"("rbind","ro")")));
  const auto more = AddWith("b", mount + "," + BindOf(half, "/b", R"("rbind","ro")") + "," +
                                     BindOf(NewFile("one", "1"), "/c", R"("rbind","ro")"));
  ASSERT_FALSE(more);
  EXPECT_THAT(more.error().message, HasSubstr("/c"));
}

}  // namespace
}  // namespace gantry::vmm
