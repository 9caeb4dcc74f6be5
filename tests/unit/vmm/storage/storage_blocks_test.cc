// SPDX-License-Identifier: Apache-2.0
//
// What becomes a disk of the guest: roots made of images, devices.
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstdlib>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/image/erofs_image.h>
#include <gantry/toolkit/mount/loop_device.h>
#include <gantry/toolkit/mount/mount.h>
#include <gantry/toolkit/mount/unmount.h>

#include "plugins/vmm/hypervisor/firecracker/firecracker.h"
#include "tests/unit/vmm/storage/storage_fixture.h"

namespace gantry::vmm {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class StorageBlocksTest : public StorageFixture {};

// A loop device stands for a volume of Kubernetes' `volumeMode: Block`.
TEST_F(StorageBlocksTest, ABlockVolumeIsADiskOfTheGuest) {
  Start();
  const std::string image = NewFolder("disk") + "/image";
  ASSERT_TRUE(WriteFile(image, std::string(1 << 20, 'x'), 0600));
  const auto loop = mount::AttachLoopDevice(image, false, false);
  ASSERT_TRUE(loop) << loop.error().message;
  struct stat info{};
  ASSERT_EQ(::stat(loop->path.c_str(), &info), 0);
  const std::string linux_part = Format(
      R"(, "linux": {{"devices": [{{"type": "b", "path": "/dev/xvda", "major": {0}, "minor": {1}}},
                                  {{"type": "c", "path": "/dev/fuse", "major": 10, "minor": 229}}],
           "resources": {{"devices": [{{"allow": true, "type": "b", "major": {0}, "minor": {1},
                                        "access": "rm"}}]}}}})",
      major(info.st_rdev), minor(info.st_rdev));
  const auto a = Add("a", "", linux_part);
  ASSERT_TRUE(a) << a.error().message;
  ASSERT_THAT(a->disks, SizeIs(1));
  EXPECT_EQ(a->disks[0].path, loop->path);
  EXPECT_TRUE(a->disks[0].read_only) << "the container may not write";
  EXPECT_THAT(Types(*a), ElementsAre("virtiofs", "device"));
  EXPECT_EQ(a->attach.mounts[1].serial, a->disks[0].serial);
  const json spec = json::parse(a->spec_json);
  EXPECT_EQ(spec["annotations"]["dev.gantry.vmm.device./dev/xvda"], a->attach.mounts[1].target);
  EXPECT_THAT(spec["linux"]["resources"]["devices"], IsEmpty());
  EXPECT_THAT(storage_->DisksOf(Id("a")), ElementsAre(a->disks[0].serial));
}

// Its guests know a disk by its file alone.
TEST_F(StorageBlocksTest, AGuestOfFirecrackersFindsADiskByItsFile) {
  traits_ = {.disks = true, .guest_rescans = true};
  Start();
  const auto added = AddOnImage(Container("a"));
  ASSERT_TRUE(added) << added.error().message;
  ASSERT_THAT(added->disks, SizeIs(1));
  const std::string serial = FirecrackerSerial(added->disks[0].path).value();
  EXPECT_EQ(added->attach.mounts[0].serial, serial);
  EXPECT_NE(added->disks[0].serial, serial) << "its name for the VMM";
}

TEST_F(StorageBlocksTest, ABlockDeviceThatIsNotThereIsNamed) {
  Start();
  const char* const devices =
      R"(, "linux": {"devices": [{"type": "b", "path": "/dev/x", "major": 4000, "minor": 1}]})";
  EXPECT_THAT(Add("a", "", devices).error().message,
              AllOf(HasSubstr("'/dev/x'"), HasSubstr("no block device 4000:1")));
}

// A file of its own for each container: mounted by the core, given to the guest, never to both.
TEST_F(StorageBlocksTest, ARootOnADeviceOfItsOwnIsGivenToTheGuest) {
  Start();
  const ContainerRequest request = Container("a");
  const std::string image = folder_.path() + "/own.ext4";
  ASSERT_EQ(std::system(Format("mke2fs -q -t ext4 {} 2M", image).c_str()), 0);
  ASSERT_TRUE(mount::MountAll(request.rootfs,
                              {{.type = "ext4", .source = image, .options = {"loop"}}},
                              folder_.path() + "/scratch"));
  const auto a = Add(request);
  ASSERT_TRUE(a) << a.error().message;
  EXPECT_FALSE(*mount::IsMountPoint(request.rootfs));
  ASSERT_THAT(a->disks, SizeIs(1));
  EXPECT_EQ(a->disks[0].path, image);
  EXPECT_FALSE(a->disks[0].read_only);
  EXPECT_THAT(Types(*a), ElementsAre("virtiofs", "ext4"));
  EXPECT_EQ(RootOf(*a), a->attach.mounts[1].target);
}

// Layers of images are disks that containers share; each has a layer of its own for writing.
TEST_F(StorageBlocksTest, ARootOfImagesIsStackedInTheGuest) {
  Start();
  const std::string image = folder_.path() + "/layer.erofs";
  const auto bytes = ErofsImage({{"file", {.mode = S_IFREG | 0644, .content = "words"}}});
  ASSERT_TRUE(bytes && WriteFile(image, *bytes, 0600));
  const std::string layer = NewFolder("layer");
  ASSERT_TRUE(mount::MountAll(layer,
                              {{.type = "erofs", .source = image, .options = {"loop", "ro"}}},
                              folder_.path() + "/scratch"));
  std::vector<Result<ContainerStorage>> both;
  for (const char* id : {"a", "b"}) {
    const ContainerRequest request = Container(id);
    const std::string upper = NewFolder(Format("upper-{}", id));
    const std::string work = NewFolder(Format("work-{}", id));
    const Status mounted = mount::MountAll(
        request.rootfs,
        {{.type = "overlay",
          .source = "overlay",
          .options = {"lowerdir=" + layer, "upperdir=" + upper, "workdir=" + work}}},
        folder_.path() + "/scratch");
    ASSERT_TRUE(mounted) << mounted.error().message;
    both.push_back(Add(request));
    ASSERT_TRUE(both.back()) << both.back().error().message;
    EXPECT_TRUE(mount::UnmountTree(request.rootfs));
  }
  EXPECT_TRUE(mount::UnmountTree(layer));
  EXPECT_THAT(Types(*both[0]), ElementsAre("virtiofs", "erofs", "tmpfs", "overlay"));
  EXPECT_EQ(both[0]->disks[0].path, image);
  EXPECT_TRUE(both[0]->disks[0].read_only);
  EXPECT_EQ(both[0]->disks[0].serial, both[1]->disks[0].serial);
  EXPECT_NE(RootOf(*both[0]), RootOf(*both[1]));
  EXPECT_THAT(storage_->DisksOf(Id("a")), IsEmpty()) << "b has it still";
  EXPECT_THAT(storage_->DetachOf(Id("a")).targets, SizeIs(3)) << "root, layer, and their folder";
  ASSERT_TRUE(storage_->Remove(Id("a")));
  EXPECT_THAT(storage_->DisksOf(Id("b")), SizeIs(1));
  // The root before the layers that it lies on.
  EXPECT_THAT(storage_->DetachOf(Id("b")).targets,
              ElementsAre(RootOf(*both[1]), HasSubstr("/layer"), HasSubstr("/"),
                          both[1]->attach.mounts[1].target));
}

// A machine has room for so many devices; an image can be shown by virtiofs just as well.
TEST_F(StorageBlocksTest, ARootOfImagesThatFindNoRoomIsShared) {
  disk_places_ = 1;
  Start();
  std::vector<std::string> types;
  for (const char* id : {"a", "b"}) {
    const ContainerRequest request = Container(id);
    const std::string image = Format("{}/{}.erofs", folder_.path(), id);
    const auto bytes = ErofsImage({{"name", {.mode = S_IFREG | 0644, .content = id}}});
    ASSERT_TRUE(bytes && WriteFile(image, *bytes, 0600));
    ASSERT_TRUE(mount::MountAll(request.rootfs,
                                {{.type = "erofs", .source = image, .options = {"loop", "ro"}}},
                                folder_.path() + "/scratch"));
    const auto added = Add(request);
    ASSERT_TRUE(added) << added.error().message;
    types.push_back(Types(*added).back());
    if (types.back() == "virtiofs") {
      EXPECT_EQ(ReadFile(Behind(RootOf(*added)) + "/name", 10).value_or(""), id);
    }
    EXPECT_TRUE(mount::UnmountTree(request.rootfs));
  }
  EXPECT_THAT(types, ElementsAre("overlay", "virtiofs"));
}

}  // namespace
}  // namespace gantry::vmm
