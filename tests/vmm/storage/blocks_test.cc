// SPDX-License-Identifier: Apache-2.0
//
// Disks of a guest: roots made of images, a device of a container's own, block volumes.
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/image/erofs_image.h>
#include <gantry/toolkit/mount/loop_device.h>
#include <gantry/toolkit/mount/mount.h>
#include <gantry/toolkit/mount/unmount.h>

#include "tests/unit/vmm/guest/stream_io.h"
#include "tests/vmm/storage/storage_guest.h"

namespace gantry::vmm {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class BlocksInGuest : public StorageInGuest {
 protected:
  /// An image with `text` as the file /text in it, mounted.
  static std::string MountedLayer(const std::string& name, const std::string& text,
                                  std::map<std::string, ErofsEntry> entries = {}) {
    const std::string image = Format("{}/{}.erofs", guest_->folder(), name);
    entries["text"] = {.mode = S_IFREG | 0644, .content = text};
    const auto bytes = ErofsImage(entries);
    EXPECT_TRUE(bytes && WriteFile(image, *bytes, 0600));
    std::string layer = guest_->NewFolder("layers/" + name);
    const Status mounted =
        mount::MountAll(layer, {{.type = "erofs", .source = image, .options = {"loop", "ro"}}},
                        guest_->folder() + "/scratch");
    EXPECT_TRUE(mounted) << mounted.error().message;
    return layer;
  }

  /// As the core has mounted it.
  static std::string MountedOverlay(const std::string& name, const std::string& lower) {
    const std::string root = guest_->NewFolder("overlays/" + name);
    const std::string upper = guest_->NewFolder("uppers/" + name);
    const std::string work = guest_->NewFolder("works/" + name);
    const Status mounted = mount::MountAll(
        root,
        {{.type = "overlay",
          .source = "overlay",
          .options = {"lowerdir=" + lower, "upperdir=" + upper, "workdir=" + work}}},
        guest_->folder() + "/scratch");
    EXPECT_TRUE(mounted) << mounted.error().message;
    return root;
  }
};

// Containers of one image have its disks together, and each a layer of its own.
TEST_F(BlocksInGuest, RootsOfImagesAreStackedInTheGuest) {
  const auto busybox = ReadFile("/bin/busybox", size_t{16} << 20);
  ASSERT_TRUE(busybox);
  const std::string base =
      MountedLayer("base", "base\n",
                   {{"bin", {.mode = S_IFDIR | 0755, .content = {}}},
                    {"busybox", {.mode = S_IFREG | 0755, .content = *busybox}}});
  const std::string top = MountedLayer("top", "top\n");
  const std::string first_root = MountedOverlay("first", top + ":" + base);
  const std::string second_root = MountedOverlay("second", top + ":" + base);
  auto first = guest_->Create({.script = "/busybox cat /text; echo mine >/text; /busybox cat /text",
                               .rootfs = first_root,
                               .busybox = "/busybox"});
  ASSERT_TRUE(first) << first.error().message;
  ASSERT_TRUE(guest_->Start(*first));
  EXPECT_EQ(ReadStream(first->out), "top\nmine\n");
  EXPECT_EQ(guest_
                ->Say({.script = "/busybox cat /text; /busybox grep ' / ' /proc/mounts",
                       .rootfs = second_root,
                       .busybox = "/busybox"})
                .substr(0, 12),
            "top\noverlay ");
  const Status gone = guest_->Delete(*first);
  EXPECT_TRUE(gone) << gone.error().message;
  for (const std::string& path : {first_root, second_root, top, base}) {
    EXPECT_TRUE(mount::UnmountTree(path));
  }
  EXPECT_THAT(guest_->storage().DisksOf(first->request.id), testing::IsEmpty());
}

TEST_F(BlocksInGuest, ARootOfItsOwnIsReadAndWritten) {
  const std::string tree = guest_->NewRoot("own-tree");
  const std::string image = guest_->folder() + "/own.ext4";
  const std::string root = guest_->NewFolder("own-root");
  ASSERT_EQ(std::system(Format("mke2fs -q -t ext4 -d {} {} 16M", tree, image).c_str()), 0);
  const std::vector<mount::Mount> mounts = {{.type = "ext4", .source = image, .options = {"loop"}}};
  ASSERT_TRUE(mount::MountAll(root, mounts, guest_->folder() + "/scratch"));
  EXPECT_THAT(guest_->Say({.script = "echo kept >/file; grep ' / ' /proc/mounts", .rootfs = root}),
              AllOf(HasSubstr("/dev/vd"), HasSubstr(" ext4 rw")));
  ASSERT_TRUE(mount::MountAll(root, mounts, guest_->folder() + "/scratch"));
  EXPECT_EQ(ReadFile(root + "/file", 10).value_or(""), "kept\n");
  EXPECT_TRUE(mount::UnmountTree(root));
}

// The device has numbers of the guest's own, and no other disk of the machine can be used.
TEST_F(BlocksInGuest, ABlockVolumeIsADevice) {
  const std::string image = guest_->folder() + "/volume";
  ASSERT_TRUE(WriteFile(image, "words" + std::string(1 << 20, '\0'), 0600));
  auto loop = mount::AttachLoopDevice(image, false, false);
  ASSERT_TRUE(loop) << loop.error().message;
  struct stat info{};
  ASSERT_EQ(::stat(loop->path.c_str(), &info), 0);
  const std::string other = guest_->folder() + "/other";
  ASSERT_TRUE(WriteFile(other, std::string(1 << 20, 'o'), 0600));
  ASSERT_TRUE(guest_->vm().AddDisk({.serial = "other", .path = other}, Soon()));
  const std::string said = guest_->Say(
      {.script =
           "exec 2>&1; head -c 5 /dev/xvda; echo; echo -n WORDS | dd of=/dev/xvda "
           "conv=notrunc,fsync 2>/dev/null && echo written; "
           "grep vd /proc/partitions | while read major minor blocks name; do "
           "mknod /dev/$name b $major $minor; head -c 1 /dev/$name >/dev/null && echo read $name; "
           "done; "
           "echo end",
       .linux_more = Format(
           R"(, "devices": [{{"type": "b", "path": "/dev/xvda", "major": {0}, "minor": {1}}}],
              "resources": {{"devices": [{{"allow": true, "type": "b", "major": {0}, "minor": {1},
                                           "access": "rwm"}}]}})",
           major(info.st_rdev), minor(info.st_rdev))});
  EXPECT_THAT(said, AllOf(HasSubstr("words\nwritten\n"), HasSubstr("Operation not permitted"),
                          HasSubstr("end\n")));
  loop->fd.reset();
  EXPECT_EQ(ReadFile(image, size_t{2} << 20)->substr(0, 5), "WORDS");
  EXPECT_TRUE(guest_->vm().RemoveDisk("other", Soon()));
}

}  // namespace
}  // namespace gantry::vmm
