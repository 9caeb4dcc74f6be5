// SPDX-License-Identifier: Apache-2.0
//
// Layers for writing that are files of the node's disk: how large, when made, and when gone.
#include <sys/stat.h>

#include <gmock/gmock.h>

#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/mount/mount.h>
#include <gantry/toolkit/mount/unmount.h>

#include "plugins/vmm/hypervisor/firecracker/firecracker.h"
#include "tests/unit/vmm/storage/storage_fixture.h"

namespace gantry::vmm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class StorageLayersTest : public StorageFixture {
 protected:
  StorageLayersTest() { layers_ = folder_.path() + "/disk/of/layers"; }
};

struct stat Info(const std::string& path) {
  struct stat info{};
  EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
  return info;
}

TEST_F(StorageLayersTest, AreSparseDisksOfEachContainersOwn) {
  Start();
  const auto a = AddOnImage(Container("a"));
  const auto b = AddOnImage(Container("b"));
  ASSERT_TRUE(a) << a.error().message;
  ASSERT_TRUE(b) << b.error().message;
  ASSERT_THAT(a->disks, SizeIs(2));
  EXPECT_THAT(Types(*a), ElementsAre("virtiofs", "erofs", "ext4", "overlay"));
  const Disk& layer = a->disks[1];
  EXPECT_FALSE(layer.read_only);
  EXPECT_EQ(a->attach.mounts[2].serial, layer.serial);
  EXPECT_NE(layer.path, b->disks[1].path);
  EXPECT_THAT(layer.path, HasSubstr(layers_));
  EXPECT_EQ(Info(layer.path).st_size, off_t{64} << 20);
  EXPECT_LT(Info(layer.path).st_blocks * 512, 1 << 20) << "blocks come as they are written";
  const std::string looked = NewFolder("looked");
  ASSERT_TRUE(mount::MountAll(looked, {{.type = "ext4", .source = layer.path, .options = {"loop"}}},
                              folder_.path() + "/scratch"));
  EXPECT_TRUE(mount::UnmountTree(looked));
}

TEST_F(StorageLayersTest, AreGoneWithTheirContainers) {
  Start();
  const auto a = AddOnImage(Container("a"));
  const auto b = AddOnImage(Container("b"));
  ASSERT_TRUE(a && b);
  EXPECT_THAT(storage_->DisksOf(Id("a")), ElementsAre(a->disks[1].serial)) << "b has the image";
  ASSERT_TRUE(storage_->Remove(Id("a")));
  EXPECT_FALSE(Exists(a->disks[1].path));
  auto next = RestartEngine();
  ASSERT_TRUE(next) << next.error().message;
  storage_ = std::move(*next);
  EXPECT_TRUE(Exists(b->disks[1].path));
  ASSERT_TRUE(storage_->Shutdown());
  EXPECT_FALSE(Exists(b->disks[1].path));
}

TEST_F(StorageLayersTest, OfSandboxesThatAreGoneAreSweptByTheNextOne) {
  Start();
  const auto a = AddOnImage(Container("a"));
  ASSERT_TRUE(a);
  const std::string file = a->disks[1].path;
  const std::string left = file.substr(0, file.rfind('/')) + "/gone.7";
  ASSERT_TRUE(WriteFile(left, "x", 0600));
  storage_.reset();
  const std::string second = folder_.path() + "/second";
  ASSERT_EQ(mkdir(second.c_str(), 0700), 0);
  StorageRequest other = Request();
  other.directory = second;
  auto made = Storage::Make(context_, other);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_FALSE(Exists(left));
  EXPECT_TRUE(Exists(file)) << "its sandbox is there";
  EXPECT_TRUE((*made)->Shutdown());
  storage_ = std::move(Storage::Make(context_, Request())).value();
}

TEST_F(StorageLayersTest, OfFirecrackersAreFoundByTheirFiles) {
  traits_ = {.disks = true, .guest_rescans = true};
  Start();
  const auto a = AddOnImage(Container("a"));
  ASSERT_TRUE(a) << a.error().message;
  EXPECT_EQ(a->attach.mounts[1].serial, FirecrackerSerial(a->disks[1].path).value());
}

TEST_F(StorageLayersTest, ThatCannotBeMadeLeaveNothing) {
  layers_ = folder_.path() + "/file";
  ASSERT_TRUE(WriteFile(layers_, "x", 0600));
  Start();
  const auto a = AddOnImage(Container("a"));
  ASSERT_FALSE(a);
  EXPECT_THAT(a.error().message, HasSubstr("layers_directory"));
  EXPECT_THAT(storage_->DisksOf(Id("a")), testing::IsEmpty());
}

}  // namespace
}  // namespace gantry::vmm
