// SPDX-License-Identifier: Apache-2.0
//
// What a container writes over shared images, where that is kept on a disk of the node's.
#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/image/erofs_image.h>
#include <gantry/toolkit/mount/mount.h>
#include <gantry/toolkit/mount/unmount.h>

#include "tests/unit/vmm/guest/stream_io.h"
#include "tests/vmm/storage/storage_guest.h"

namespace gantry::vmm {
namespace {

using testing::HasSubstr;

class LayersInGuest : public StorageInGuest {
 protected:
  static constexpr uint32_t kMib = 32;

  static void SetUpTestSuite() { BootWith(kMib); }

  /// An image of busybox, mounted as the core has it.
  static std::string MountedRoot() {
    const auto busybox = ReadFile("/bin/busybox", size_t{16} << 20);
    const std::string image = guest_->folder() + "/root.erofs";
    const auto bytes = ErofsImage({{"busybox", {.mode = S_IFREG | 0755, .content = *busybox}}});
    EXPECT_TRUE(bytes && WriteFile(image, *bytes, 0600));
    std::string root = guest_->NewFolder("root");
    EXPECT_TRUE(mount::MountAll(root,
                                {{.type = "erofs", .source = image, .options = {"loop", "ro"}}},
                                guest_->folder() + "/scratch"));
    return root;
  }
};

// Larger than the layer, and less than the guest's memory has room for.
TEST_F(LayersInGuest, AreAsLargeAsTheOptionSaysAndOnTheNodesDisk) {
  const std::string root = MountedRoot();
  auto container = guest_->Create(
      {.script = "/busybox dd if=/dev/zero of=/big bs=1M count=64 2>&1; /busybox stat -c %s /big; "
                 "/busybox sync",
       .rootfs = root,
       .busybox = "/busybox"});
  ASSERT_TRUE(container) << container.error().message;
  const auto layers = ListDirectory(guest_->layers(), 10);
  ASSERT_TRUE(layers && layers->size() == 1);
  ASSERT_TRUE(guest_->Start(*container));
  const std::string said = ReadStream(container->out);
  EXPECT_THAT(said, HasSubstr("No space left"));
  EXPECT_TRUE(guest_->WaitForExit(*container));
  struct stat info{};
  ASSERT_EQ(stat((guest_->layers() + "/" + layers->front()).c_str(), &info), 0);
  EXPECT_EQ(info.st_size, off_t{kMib} << 20);
  EXPECT_GT(info.st_blocks * 512, off_t{kMib / 2} << 20) << "what was written is there";
  const Status gone = guest_->Delete(*container);
  EXPECT_TRUE(gone) << gone.error().message;
  EXPECT_TRUE(ListDirectory(guest_->layers(), 10)->empty());
  EXPECT_TRUE(mount::UnmountTree(root));
}

}  // namespace
}  // namespace gantry::vmm
