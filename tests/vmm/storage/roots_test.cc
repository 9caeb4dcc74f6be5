// SPDX-License-Identifier: Apache-2.0
//
// Roots of containers through the shared directory, in a guest.
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/mount/mount.h>
#include <gantry/toolkit/mount/unmount.h>

#include "tests/unit/vmm/guest/stream_io.h"
#include "tests/vmm/storage/storage_guest.h"

namespace gantry::vmm {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class RootsInGuest : public StorageInGuest {};

// What a container writes is in its root on the node, with its owners, and nobody else's root is
// seen, nor what the agent has mounted.
TEST_F(RootsInGuest, AreEachContainersOwn) {
  auto first = guest_->Create({.script = "echo mine >/file; mkdir -p /d/e; echo done"});
  ASSERT_TRUE(first) << first.error().message;
  ASSERT_TRUE(guest_->Start(*first));
  EXPECT_EQ(ReadStream(first->out), "done\n");
  EXPECT_EQ(ReadFile(first->InRoot("/file"), 10).value_or(""), "mine\n");
  EXPECT_TRUE(Exists(first->InRoot("/d/e")));
  EXPECT_THAT(guest_->Say({.script = "ls -a / /run 2>&1; cat /proc/mounts"}),
              AllOf(HasSubstr("bin\n"), Not(HasSubstr("file\n")), Not(HasSubstr("gantry/shared"))));
  EXPECT_TRUE(guest_->Delete(*first));
}

// As the overlayfs snapshotter gives it, mounted when the guest has long booted.
TEST_F(RootsInGuest, AnOverlayOfTheNodeIsWrittenToItsUpperLayer) {
  const std::string lower = guest_->NewRoot("overlay-lower");
  ASSERT_TRUE(WriteFile(lower + "/old", "old\n", 0644));
  const std::string upper = guest_->NewFolder("overlay-fs/upper");
  const std::string root = guest_->NewFolder("overlay-root");
  // An overlay is not made of what is in an overlay, which the node's own root may be.
  ASSERT_EQ(::mount("tmpfs", guest_->NewFolder("overlay-fs").c_str(), "tmpfs", 0, nullptr), 0);
  guest_->NewFolder("overlay-fs/upper");
  guest_->NewFolder("overlay-fs/work");
  const Status mounted =
      mount::MountAll(root,
                      {{.type = "overlay",
                        .source = "overlay",
                        .options = {"lowerdir=" + lower, "upperdir=" + upper,
                                    Format("workdir={}/overlay-fs/work", guest_->folder())}}},
                      guest_->folder() + "/scratch");
  ASSERT_TRUE(mounted) << mounted.error().message;
  EXPECT_EQ(guest_->Say({.script = "cat /old; rm /old; echo new >/new; mv /new /newer; ls -d /*er",
                         .rootfs = root}),
            "old\n/newer\n");
  EXPECT_EQ(ReadFile(upper + "/newer", 10).value_or(""), "new\n");
  struct stat info{};
  ASSERT_EQ(::lstat((upper + "/old").c_str(), &info), 0);
  EXPECT_TRUE(S_ISCHR(info.st_mode)) << "a whiteout";
  EXPECT_TRUE(mount::UnmountTree(root)) << "the guest has let go of it";
  EXPECT_TRUE(mount::UnmountTree(guest_->folder() + "/overlay-fs"));
}

// Twenty in a row, as of a container that is restarted: nothing is used up.
TEST_F(RootsInGuest, ComeAndGo) {
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(guest_->Say({.script = "echo up"}), "up\n") << i;
  }
  const auto shared = ListDirectory(guest_->folder() + "/run/shared");
  ASSERT_TRUE(shared);
  EXPECT_THAT(*shared, testing::IsEmpty());
}

}  // namespace
}  // namespace gantry::vmm
