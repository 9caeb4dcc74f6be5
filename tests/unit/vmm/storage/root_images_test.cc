// SPDX-License-Identifier: Apache-2.0
//
// Which roots are made of images, as the kernel tells of mounts; and with real ones.
#include "plugins/vmm/storage/root_images.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <cstdlib>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/mount/mount.h>
#include <gantry/toolkit/mount/unmount.h>

#include "core/os/fs.h"

namespace gantry::vmm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class RootImagesTest : public testing::Test {
 protected:
  RootImagesTest() {
    for (const char* name : {"/a.erofs", "/b.squashfs", "/c.ext4"}) {
      EXPECT_TRUE(WriteFile(folder_.path() + name, "image", 0600));
    }
    for (const char* name : {"/upper", "/used"}) {
      EXPECT_TRUE(os::MakeDirs(folder_.path() + name, 0700));
    }
    EXPECT_TRUE(WriteFile(folder_.path() + "/used/file", "", 0600));
  }

  /// `text`: mountinfo, with @ for the folder.
  std::optional<RootImages> Find(std::string text) const {
    for (size_t at = 0; (at = text.find('@')) != std::string::npos;) {
      text.replace(at, 1, folder_.path());
    }
    return FindRootImages(mount::ParseMountInfo(text), "/bundle/rootfs");
  }

  RootImage Image(const std::string& name, const std::string& type) const {
    return {.path = folder_.path() + "/" + name, .type = type};
  }

  os::TempDir folder_ = os::TempDir::Create().value();
};

constexpr const char* kLayers =
    "10 1 7:1 / /layers/1 ro - erofs @/a.erofs ro\n"
    "11 1 7:2 / /layers/2 ro - squashfs @/b.squashfs ro\n"
    "12 1 0:44 / /layers/plain rw - tmpfs tmpfs rw\n";

TEST_F(RootImagesTest, AnOverlayOfImages) {
  for (const char* lower :
       {"lowerdir=/layers/2:/layers/1", "lowerdir+=/layers/2,lowerdir+=/layers/1"}) {
    const auto images =
        Find(std::string(kLayers) + Format("20 1 0:50 / /bundle/rootfs rw - overlay overlay "
                                           "rw,{},upperdir=@/upper,workdir=@/work\n",
                                           lower));
    ASSERT_TRUE(images) << lower;
    EXPECT_FALSE(images->own);
    EXPECT_THAT(images->layers,
                ElementsAre(Image("b.squashfs", "squashfs"), Image("a.erofs", "erofs")));
  }
}

struct NotImages {
  const char* name;
  const char* mounts;
};

class OtherRoot : public RootImagesTest, public testing::WithParamInterface<NotImages> {};

TEST_P(OtherRoot, GoesThroughVirtiofs) {
  EXPECT_FALSE(Find(std::string(kLayers) + GetParam().mounts));
}

INSTANTIATE_TEST_SUITE_P(
    All, OtherRoot,
    testing::Values(
        NotImages{"Nothing", ""},
        NotImages{"LayerWithAFile",
                  "20 1 0:50 / /bundle/rootfs rw - overlay overlay "
                  "rw,lowerdir=/layers/1,upperdir=@/used,workdir=@/work\n"},
        NotImages{"LayerOfFiles",
                  "20 1 0:50 / /bundle/rootfs rw - overlay overlay "
                  "rw,lowerdir=/layers/1:/layers/plain\n"},
        NotImages{"LayerThatIsNoMount",
                  "20 1 0:50 / /bundle/rootfs rw - overlay overlay rw,lowerdir=/layers/1/sub\n"},
        NotImages{"RelativeLayer",
                  "20 1 0:50 / /bundle/rootfs rw - overlay overlay rw,lowerdir=1:2\n"},
        NotImages{"DataOnlyLayer",
                  "20 1 0:50 / /bundle/rootfs rw - overlay overlay "
                  "rw,lowerdir=/layers/1::/layers/2\n"},
        NotImages{"OverlayBehindAnother",
                  "20 1 0:50 / /bundle/rootfs rw - overlay overlay rw,lowerdir=/layers/1\n"
                  "21 20 0:51 / /bundle/rootfs rw - tmpfs tmpfs rw\n"},
        NotImages{"MountsBelow",
                  "20 1 0:50 / /bundle/rootfs rw - overlay overlay rw,lowerdir=/layers/1\n"
                  "21 20 0:51 / /bundle/rootfs/data rw - tmpfs tmpfs rw\n"},
        NotImages{"BindOfAFolder", "20 1 8:1 /files /bundle/rootfs rw - ext4 @/c.ext4 rw\n"},
        NotImages{"ReadOnlyExt4", "20 1 7:3 / /bundle/rootfs ro - ext4 @/c.ext4 ro\n"},
        NotImages{"MountedTwice",
                  "19 1 7:3 / /elsewhere rw - ext4 @/c.ext4 rw\n"
                  "20 1 7:3 / /bundle/rootfs rw - ext4 @/c.ext4 rw\n"},
        NotImages{"ImageThatIsGone", "20 1 7:3 / /bundle/rootfs ro - erofs @/gone ro\n"}),
    [](const auto& one) { return std::string(one.param.name); });

TEST_F(RootImagesTest, OneImageOrADeviceOfItsOwn) {
  const auto image = Find("20 1 7:3 / /bundle/rootfs ro - erofs @/a.erofs ro\n");
  ASSERT_TRUE(image);
  EXPECT_FALSE(image->own);
  const auto own = Find("20 1 7:3 / /bundle/rootfs rw - ext4 @/c.ext4 rw\n");
  ASSERT_TRUE(own);
  EXPECT_TRUE(own->own);
  EXPECT_THAT(own->layers, ElementsAre(Image("c.ext4", "ext4")));
}

// Of a snapshotter that has a file for each container: mounted by a loop device, released, and
// nobody has it then.
TEST_F(RootImagesTest, ARealImageIsFoundBehindItsLoopDeviceAndReleased) {
  const std::string image = folder_.path() + "/real.ext4";
  const std::string rootfs = folder_.path() + "/rootfs";
  ASSERT_EQ(std::system(Format("mke2fs -q -t ext4 {} 2M", image).c_str()), 0);
  const Status mounted = mount::MountAll(
      rootfs, {{.type = "ext4", .source = image, .target = {}, .options = {"loop", "rw"}}},
      folder_.path() + "/scratch");
  ASSERT_TRUE(mounted) << mounted.error().message;
  const auto images = FindRootImages(rootfs);
  ASSERT_TRUE(images && *images);
  EXPECT_TRUE((*images)->own);
  EXPECT_THAT((*images)->layers, ElementsAre(RootImage{.path = image, .type = "ext4"}));
  {
    const UniqueFd in_use(::open(rootfs.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const Status busy = ReleaseRoot(rootfs, (*images)->layers[0]);
    ASSERT_FALSE(busy);
    EXPECT_THAT(busy.error().message, HasSubstr("EBUSY"));
  }
  const Status released = ReleaseRoot(rootfs, (*images)->layers[0]);
  EXPECT_TRUE(released) << released.error().message;
  EXPECT_FALSE(*mount::IsMountPoint(rootfs));
}

}  // namespace
}  // namespace gantry::vmm
