// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/mount/id_map.h>
#include <gantry/toolkit/mount/mount.h>
#include <gantry/toolkit/mount/mount_info.h>
#include <gantry/toolkit/mount/options.h>
#include <gantry/toolkit/mount/overlay.h>
#include <gantry/toolkit/mount/unmount.h>

#include "core/os/fs.h"

namespace gantry::mount {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;

// The mounts of these tests are in a mount namespace of the test process.
bool EnterMountNamespace() {
  return unshare(CLONE_NEWNS) == 0 && ::mount("", "/", nullptr, MS_PRIVATE | MS_REC, nullptr) == 0;
}

class MountTest : public testing::Test {
 protected:
  void SetUp() override {
    static const bool kInNamespace = geteuid() == 0 && EnterMountNamespace();
    if (!kInNamespace) {
      GTEST_SKIP() << "needs root and a mount namespace";
    }
    auto dir = os::TempDir::Create();
    ASSERT_TRUE(dir);
    // Overlay wants upper directories that are on no overlay themselves.
    temp_ = *std::move(dir);
    base_ = temp_.path();
    ASSERT_EQ(::mount("tmpfs", base_.c_str(), "tmpfs", 0, "mode=755"), 0);
    rootfs_ = base_ + "/rootfs";
    scratch_ = base_ + "/a: strange, run dir";
  }

  void TearDown() override {
    if (!base_.empty()) {
      EXPECT_TRUE(UnmountTree(base_));
    }
  }

  std::string MakeDir(const std::string& name) const {
    EXPECT_TRUE(os::MakeDirs(base_ + "/" + name, 0755));
    return base_ + "/" + name;
  }

  std::string MakeFile(const std::string& name, const std::string& text = "x") const {
    std::ofstream(base_ + "/" + name) << text;
    return base_ + "/" + name;
  }

  Status MountAll(const std::string& rootfs, const std::vector<Mount>& mounts) const {
    return mount::MountAll(rootfs, mounts, scratch_);
  }

  size_t MountsAtRootfs() const {
    const auto mounts = ListMounts(rootfs_);
    return mounts ? mounts->size() : 999;
  }

  os::TempDir temp_;
  std::string base_;
  std::string rootfs_;
  std::string scratch_;
};

TEST_F(MountTest, MakesRootfsAndBindMountsReadOnly) {
  const std::string source = MakeDir("source");
  MakeFile("source/file");

  const Status done = MountAll(
      rootfs_, {{.type = "bind", .source = source, .target = "", .options = {"rbind", "ro"}}});

  ASSERT_TRUE(done) << done.error().message;
  EXPECT_TRUE(Exists(rootfs_ + "/file"));
  EXPECT_EQ(open((rootfs_ + "/new").c_str(), O_CREAT | O_WRONLY, 0644), -1);
  EXPECT_EQ(errno, EROFS);
  EXPECT_NE(open((source + "/new").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644), -1);
}

TEST_F(MountTest, FollowsNoLinksOnABindThatShallNot) {
  const std::string source = MakeDir("source");
  MakeFile("source/file");
  ASSERT_EQ(symlink("file", (source + "/link").c_str()), 0);

  const Status done = MountAll(
      rootfs_,
      {{.type = "bind", .source = source, .target = "", .options = {"rbind", "nosymfollow"}}});

  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(open((rootfs_ + "/link").c_str(), O_RDONLY | O_CLOEXEC), -1);
  EXPECT_EQ(errno, ELOOP);
}

TEST_F(MountTest, GivesBindMountsTheirOtherFlagsToo) {
  const std::string source = MakeDir("source");

  ASSERT_TRUE(MountAll(
      rootfs_,
      {{.type = "bind", .source = source, .target = "", .options = {"bind", "nosuid", "noexec"}}}));

  struct statvfs info{};
  ASSERT_EQ(statvfs(rootfs_.c_str(), &info), 0);
  EXPECT_EQ(info.f_flag & (ST_NOSUID | ST_NOEXEC | ST_RDONLY),
            static_cast<unsigned long>(ST_NOSUID | ST_NOEXEC));
}

TEST_F(MountTest, FindsTargetsInsideTheRootfsOnly) {
  const std::string source = MakeDir("source");
  MakeDir("source/etc");
  MakeDir("outside");
  MakeDir("source" + base_ + "/outside");
  ASSERT_EQ(symlink((base_ + "/outside").c_str(), (source + "/link").c_str()), 0);

  const Status done = MountAll(
      rootfs_, {{.type = "bind", .source = source, .target = "", .options = {"bind"}},
                {.type = "tmpfs", .source = "tmpfs", .target = "../../link", .options = {}}});

  ASSERT_TRUE(done) << done.error().message;
  const auto mounts = ListMounts(rootfs_);
  ASSERT_TRUE(mounts);
  ASSERT_THAT(*mounts, SizeIs(2));
  EXPECT_EQ(mounts->back().path, rootfs_ + base_ + "/outside");
}

TEST_F(MountTest, UndoesEverythingWhenOneFails) {
  const std::string source = MakeDir("source");
  MakeDir("source/sub");

  const Status done = MountAll(
      rootfs_, {{.type = "bind", .source = source, .target = "", .options = {"bind"}},
                {.type = "tmpfs", .source = "tmpfs", .target = "sub", .options = {}},
                {.type = "bind", .source = base_ + "/absent", .target = "", .options = {"bind"}}});

  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kNotFound);
  EXPECT_THAT(done.error().message,
              AllOf(HasSubstr("component 2"), HasSubstr("'bind'"), HasSubstr("/absent")));
  EXPECT_EQ(MountsAtRootfs(), 0U);
}

TEST_F(MountTest, RefusesFuseAndManagedTypes) {
  const Status fuse = MountAll(rootfs_, {{.type = "fuse.x", .source = "a"}});
  const Status managed = MountAll(rootfs_, {{.type = "mkdir/overlay", .source = "a"}});

  ASSERT_FALSE(fuse);
  EXPECT_EQ(fuse.error().code, Code::kUnimplemented);
  ASSERT_FALSE(managed);
  EXPECT_EQ(managed.error().code, Code::kInvalidArgument);
}

TEST_F(MountTest, RefusesOptionsLongerThanAPage) {
  const Status done = MountAll(
      rootfs_,
      {{.type = "tmpfs", .source = "tmpfs", .target = "", .options = {std::string(5000, 'x')}}});

  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("mount options are too long"));
}

// An overlay of `layers` directories with long names, each with a file of its own.
class OverlayTest : public MountTest {
 protected:
  Mount Overlay(int layers) {
    std::string lower;
    for (int i = 0; i < layers; ++i) {
      const std::string name = Format("layers/{:0>100}", i);
      const std::string dir = MakeDir(name);
      MakeFile(name + Format("/file{}", i));
      MakeFile(name + "/common", std::to_string(i));
      lower += (i == 0 ? "" : ":") + dir;
    }
    return Mount{.type = "overlay",
                 .source = "overlay",
                 .target = "",
                 .options = {"index=off", "workdir=" + MakeDir("work"),
                             "upperdir=" + MakeDir("upper"), "lowerdir=" + lower}};
  }

  void ExpectAllLayers(int layers) const {
    for (int i = 0; i < layers; ++i) {
      EXPECT_TRUE(Exists(rootfs_ + Format("/file{}", i))) << i;
    }
    const auto common = ReadFile(rootfs_ + "/common", 16);
    EXPECT_TRUE(common && *common == "0");
  }
};

TEST_F(OverlayTest, IsMountedWithFewLayers) {
  const Status done = MountAll(rootfs_, {Overlay(3)});

  ASSERT_TRUE(done) << done.error().message;
  ExpectAllLayers(3);
}

TEST_F(OverlayTest, IsMountedWithMoreLayersThanFitAPage) {
  const Status done = MountAll(rootfs_, {Overlay(120)});

  ASSERT_TRUE(done) << done.error().message;
  ExpectAllLayers(120);
}

TEST_F(OverlayTest, IsMountedByTheCommonDirectoryToo) {
  ASSERT_TRUE(os::MakeDirs(rootfs_, 0711));
  const auto options = ParseMountOptions(Overlay(33).options);
  ASSERT_TRUE(options);
  ASSERT_GT(options->JoinedData().size(), 4096U);
  const std::filesystem::path before = std::filesystem::current_path();

  const Status done = MountOverlayRelative("overlay", rootfs_, *options);

  ASSERT_TRUE(done) << done.error().message;
  ExpectAllLayers(33);
  EXPECT_EQ(std::filesystem::current_path(), before);
}

TEST_F(OverlayTest, SaysWhatTheKernelSays) {
  Mount overlay = Overlay(120);
  overlay.options.back() += ":/absent/layer";

  const Status done = MountAll(rootfs_, {overlay});

  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().sys_errno, ENOENT);
  EXPECT_EQ(MountsAtRootfs(), 0U);
}

TEST_F(OverlayTest, MapsTheIdsOfItsLayers) {
  Mount overlay = Overlay(2);
  overlay.options.insert(overlay.options.end(), {"uidmap=0:7000:1000", "gidmap=0:8000:1000"});

  const Status done = MountAll(rootfs_, {overlay});

  if (!done && done.error().sys_errno == EINVAL) {
    GTEST_SKIP() << "this file system cannot be id-mapped: " << done.error().message;
  }
  ASSERT_TRUE(done) << done.error().message;
  struct stat info{};
  ASSERT_EQ(stat((rootfs_ + "/file1").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 7000U);
  EXPECT_EQ(info.st_gid, 8000U);
  EXPECT_EQ(MountsAtRootfs(), 1U);
}

/// /tmp as nobody can write into it, and below it what there is.
class ReadOnlyTmp {
 public:
  ReadOnlyTmp()
      : made_(::mount("/tmp", "/tmp", nullptr, MS_BIND | MS_REC, nullptr) == 0 &&
              ::mount("", "/tmp", nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) == 0) {}

  ReadOnlyTmp(const ReadOnlyTmp&) = delete;
  ReadOnlyTmp& operator=(const ReadOnlyTmp&) = delete;

  ~ReadOnlyTmp() { umount2("/tmp", MNT_DETACH); }

  bool made() const { return made_; }

 private:
  bool made_;
};

TEST_F(OverlayTest, MapsItsLayersWithoutAnythingInTmp) {
  Mount overlay = Overlay(2);
  overlay.options.insert(overlay.options.end(), {"uidmap=0:7000:1000", "gidmap=0:8000:1000"});
  const ReadOnlyTmp tmp;
  ASSERT_TRUE(tmp.made());

  const Status done = MountAll(rootfs_, {overlay});

  if (!done && done.error().sys_errno == EINVAL) {
    GTEST_SKIP() << "this file system cannot be id-mapped: " << done.error().message;
  }
  ASSERT_TRUE(done) << done.error().message;
  ExpectAllLayers(2);
  struct stat info{};
  ASSERT_EQ(stat(scratch_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0700U);
  EXPECT_THAT(ListDirectory(scratch_, 9).value(), testing::IsEmpty());
  EXPECT_EQ(umount2(rootfs_.c_str(), MNT_DETACH), 0);
}

TEST_F(MountTest, RemovesWhatAKilledProcessHasLeftOfAMappedLayer) {
  const std::string left = MakeDir(std::filesystem::path(scratch_).filename().string() + "/left");
  MakeDir("layer");
  MakeFile("layer/file");
  ASSERT_EQ(::mount((base_ + "/layer").c_str(), left.c_str(), nullptr, MS_BIND, nullptr), 0);
  ASSERT_TRUE(Exists(left + "/file"));

  const Status cleared = ClearMountScratch(scratch_);

  ASSERT_TRUE(cleared) << cleared.error().message;
  EXPECT_FALSE(Exists(left));
  EXPECT_TRUE(Exists(base_ + "/layer/file")) << "it is the layer's";
  EXPECT_TRUE(ClearMountScratch(scratch_)) << "again";
  EXPECT_TRUE(ClearMountScratch(base_ + "/absent"));
}

TEST_F(MountTest, RemovesNoFilesOfWhatItCannotUnmount) {
  const std::string name = std::filesystem::path(scratch_).filename().string();
  MakeDir(name + "/a");
  MakeFile(name + "/a/file");
  MakeDir(name + "/b");

  const Status cleared = ClearMountScratch(scratch_);

  ASSERT_FALSE(cleared);
  EXPECT_THAT(cleared.error().message, HasSubstr(scratch_ + "/a"));
  EXPECT_TRUE(Exists(scratch_ + "/a/file"));
  EXPECT_FALSE(Exists(scratch_ + "/b"));
}

TEST_F(MountTest, MapsTheIdsOfABindMount) {
  const std::string source = MakeDir("source");
  MakeFile("source/file");

  const Status done =
      MountAll(rootfs_, {{.type = "bind",
                          .source = source,
                          .target = "",
                          .options = {"bind", "ro", "uidmap=0:7000:1000", "gidmap=0:8000:1000"}}});

  if (!done && done.error().sys_errno == EINVAL) {
    GTEST_SKIP() << "this file system cannot be id-mapped: " << done.error().message;
  }
  ASSERT_TRUE(done) << done.error().message;
  struct stat info{};
  ASSERT_EQ(stat((rootfs_ + "/file").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 7000U);
  EXPECT_EQ(info.st_gid, 8000U);
  EXPECT_EQ(open((rootfs_ + "/new").c_str(), O_CREAT | O_WRONLY, 0644), -1);
  EXPECT_EQ(MountsAtRootfs(), 1U);
}

TEST_F(MountTest, AttachesImagesToLoopDevices) {
  const std::string image = base_ + "/image";
  const std::string make = "mkfs.ext4 -q " + image + " 4M >/dev/null 2>&1";
  if (access("/dev/loop-control", F_OK) != 0 || system(make.c_str()) != 0) {
    GTEST_SKIP() << "needs loop devices and mkfs.ext4";
  }

  const Status done = MountAll(
      rootfs_, {{.type = "ext4", .source = image, .target = "", .options = {"loop", "ro"}}});

  ASSERT_TRUE(done) << done.error().message;
  EXPECT_TRUE(Exists(rootfs_ + "/lost+found"));
  const auto mounts = ListMounts(rootfs_);
  ASSERT_TRUE(mounts);
  ASSERT_THAT(*mounts, SizeIs(1));
  const std::string device = std::filesystem::path(mounts->front().source).filename();
  ASSERT_TRUE(UnmountTree(rootfs_));
  EXPECT_FALSE(Exists("/sys/block/" + device + "/loop/backing_file"));
}

TEST_F(MountTest, UnmountsATreeFromTheTop) {
  ASSERT_TRUE(MountAll(
      rootfs_, {{.type = "tmpfs", .source = "tmpfs"}, {.type = "tmpfs", .source = "second"}}));
  ASSERT_TRUE(os::MakeDirs(rootfs_ + "/a b/c", 0755));
  ASSERT_TRUE(MountAll(rootfs_, {{.type = "tmpfs", .source = "tmpfs", .target = "a b"}}));
  ASSERT_EQ(MountsAtRootfs(), 3U);
  EXPECT_TRUE(IsMountPoint(rootfs_).value());
  EXPECT_TRUE(IsMountPoint(rootfs_ + "/a b").value());
  EXPECT_FALSE(IsMountPoint(rootfs_ + "/a").value());

  const auto report = UnmountTree(rootfs_);
  const auto again = UnmountTree(rootfs_);

  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->unmounted, 3U);
  EXPECT_TRUE(report->detached.empty());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->unmounted, 0U);
  EXPECT_EQ(MountsAtRootfs(), 0U);
  EXPECT_FALSE(IsMountPoint(rootfs_).value());
  EXPECT_FALSE(IsMountPoint(rootfs_ + "/absent/too").value());
}

TEST_F(MountTest, KnowsAMountPointHoweverItIsWritten) {
  ASSERT_TRUE(MountAll(rootfs_, {{.type = "tmpfs", .source = "tmpfs"}}));
  const std::string name = rootfs_.substr(rootfs_.rfind('/') + 1);
  for (const std::string& path :
       {rootfs_, rootfs_ + "/", rootfs_ + "//", base_ + "//" + name, base_ + "/./" + name}) {
    EXPECT_TRUE(IsMountPoint(path).value_or(false)) << path;
  }
  EXPECT_TRUE(IsMountPoint("/"));
  for (const std::string& path :
       {std::string(), std::string("relative/name"), rootfs_ + "/.", rootfs_ + "/..", name}) {
    const auto report = UnmountTree(path);
    ASSERT_FALSE(report) << path;
    EXPECT_EQ(report.error().code, Code::kInvalidArgument) << path;
  }
  EXPECT_EQ(MountsAtRootfs(), 1U);
}

TEST_F(MountTest, DetachesWhatIsBusyAndSaysSo) {
  ASSERT_TRUE(MountAll(rootfs_, {{.type = "tmpfs", .source = "tmpfs"}}));
  const UniqueFd user(open(rootfs_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));

  const auto report = UnmountTree(rootfs_);

  ASSERT_TRUE(report) << report.error().message;
  EXPECT_THAT(report->detached, testing::ElementsAre(rootfs_));
  EXPECT_EQ(MountsAtRootfs(), 0U);
}

TEST_F(MountTest, UnmountFollowsNoLink) {
  const std::string other = MakeDir("other");
  ASSERT_EQ(::mount("tmpfs", other.c_str(), "tmpfs", 0, ""), 0);
  ASSERT_EQ(symlink(other.c_str(), rootfs_.c_str()), 0);

  const auto report = UnmountTree(rootfs_);
  const auto absent = UnmountTree(base_ + "/absent/too");

  ASSERT_TRUE(report);
  EXPECT_EQ(report->unmounted, 0U);
  EXPECT_TRUE(absent);
  const auto mounts = ListMounts(other);
  EXPECT_TRUE(mounts && mounts->size() == 1);
}

}  // namespace
}  // namespace gantry::mount
