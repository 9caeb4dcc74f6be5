// SPDX-License-Identifier: Apache-2.0
//
// The files of containers, from config.json to what lies below the shared directory.
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/mount/mount_info.h>
#include <gantry/toolkit/mount/unmount.h>

#include "tests/unit/vmm/storage/storage_fixture.h"

namespace gantry::vmm {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class StorageTest : public StorageFixture {};

TEST_F(StorageTest, ARootIsItsContainersAlone) {
  Start();
  const auto a = Add("a");
  const auto b = Add("b");
  ASSERT_TRUE(a && b);
  EXPECT_NE(RootOf(*a), RootOf(*b));
  EXPECT_EQ(ReadFile(Behind(RootOf(*a)) + "/name", 10).value_or(""), "a");
  EXPECT_EQ(ReadFile(Behind(RootOf(*b)) + "/name", 10).value_or(""), "b");
  EXPECT_THAT(Types(*a), ElementsAre("virtiofs"));
  EXPECT_THAT(a->disks, IsEmpty());
  EXPECT_THAT(storage_->DetachOf(Id("a")).targets, ElementsAre(RootOf(*a)));
  ASSERT_TRUE(storage_->Remove(Id("a")));
  EXPECT_FALSE(Exists(Behind(RootOf(*a))));
  EXPECT_TRUE(Exists(Behind(RootOf(*b)) + "/name"));
}

// One directory for all containers of the pod is one for their FIFOs, locks and memory, too.
TEST_F(StorageTest, AVolumeIsTheSameForAllContainers) {
  Start();
  const std::string volume = NewFolder("volume");
  ASSERT_TRUE(WriteFile(volume + "/file", "words", 0644));
  const auto a = Add("a", BindOf(volume, "/vol"));
  const auto b = Add("b", BindOf(volume, "/other") + "," + BindOf(volume, "/again"));
  ASSERT_TRUE(a && b);
  EXPECT_EQ(SourceOf(*a), SourceOf(*b, 0));
  EXPECT_EQ(SourceOf(*b, 0), SourceOf(*b, 1));
  const std::string there = Behind(SourceOf(*a)) + "/file";
  EXPECT_EQ(ReadFile(there, 10).value_or(""), "words");
  EXPECT_THAT(storage_->DetachOf(Id("a")).targets, SizeIs(1)) << "b has it still";
  ASSERT_TRUE(storage_->Remove(Id("a")));
  EXPECT_TRUE(Exists(there));
  EXPECT_THAT(storage_->DetachOf(Id("b")).targets, SizeIs(2));
  ASSERT_TRUE(storage_->Remove(Id("b")));
  EXPECT_FALSE(Exists(there));
}

// Between DetachOf and Remove the guest lets go of it: who comes then gets another one.
TEST_F(StorageTest, AVolumeThatIsLeavingIsMadeAnew) {
  Start();
  const std::string volume = NewFolder("volume");
  const auto a = Add("a", BindOf(volume, "/vol"));
  ASSERT_TRUE(a);
  EXPECT_THAT(storage_->DetachOf(Id("a")).targets, SizeIs(2));
  const auto b = Add("b", BindOf(volume, "/vol"));
  ASSERT_TRUE(b);
  EXPECT_NE(SourceOf(*a), SourceOf(*b));
  ASSERT_TRUE(storage_->Remove(Id("a")));
  EXPECT_TRUE(Exists(Behind(SourceOf(*b))));
}

// What is read-only for a container is so on the node, where no guest can change it; but a volume
// of the pod's own must be one for who writes and for who does not.
TEST_F(StorageTest, ReadOnlyIsKeptOnTheNode) {
  Start();
  const std::string host = NewFolder("host");
  const std::string pods = NewFolder("pods/1/volumes/kubernetes.io~empty-dir/cache");
  const auto a =
      Add("a", BindOf(host, "/h", R"("rbind","ro")") + "," + BindOf(pods, "/p", R"("rbind","ro")"));
  const auto b = Add("b", BindOf(host, "/h") + "," + BindOf(pods, "/p"));
  ASSERT_TRUE(a && b);
  EXPECT_EQ(WriteFile(Behind(SourceOf(*a, 0)) + "/x", "", 0600).error().sys_errno, EROFS);
  EXPECT_TRUE(WriteFile(Behind(SourceOf(*b, 0)) + "/x", "", 0600));
  EXPECT_EQ(SourceOf(*a, 1), SourceOf(*b, 1));
  EXPECT_THAT(json::parse(a->spec_json)["mounts"][1]["options"].dump(), HasSubstr("\"ro\""));
}

// As kubelet updates a volume: a link is renamed over the old one.
TEST_F(StorageTest, AnUpdateByRenameIsSeen) {
  Start();
  const std::string volume = NewFolder("secret");
  for (const char* version : {"v1", "v2"}) {
    NewFolder(std::string("secret/..") + version);
    ASSERT_TRUE(WriteFile(volume + "/.." + version + "/key", version, 0644));
  }
  ASSERT_EQ(::symlink("..v1", (volume + "/..data").c_str()), 0);
  ASSERT_EQ(::symlink("..data/key", (volume + "/key").c_str()), 0);
  const auto a = Add("a", BindOf(volume, "/secret", R"("rbind","ro")"));
  ASSERT_TRUE(a);
  const std::string key = Behind(SourceOf(*a)) + "/key";
  EXPECT_EQ(ReadFile(key, 10).value_or(""), "v1");
  ASSERT_EQ(::symlink("..v2", (volume + "/..new").c_str()), 0);
  ASSERT_EQ(::rename((volume + "/..new").c_str(), (volume + "/..data").c_str()), 0);
  EXPECT_EQ(ReadFile(key, 10).value_or(""), "v2");
}

/// How often the mounts of this process's namespace were asked for, which takes the longer the more
/// there are.
class ReadsOfMounts {
 public:
  ReadsOfMounts() {
    for (const char* const file : {"/proc/self/mountinfo", "/proc/self/mounts"}) {
      EXPECT_GE(inotify_add_watch(watch_.get(), file, IN_OPEN), 0);
    }
  }

  /// Since the last time.
  size_t Count() const {
    size_t count = 0;
    std::array<char, 4096> events{};
    for (ssize_t got = 0; (got = read(watch_.get(), events.data(), events.size())) > 0;) {
      count += static_cast<size_t>(got) / sizeof(inotify_event);
    }
    return count;
  }

 private:
  UniqueFd watch_{inotify_init1(IN_NONBLOCK | IN_CLOEXEC)};
};

TEST_F(StorageTest, MoreMountsAskTheNodeForItsMountsNoMoreOften) {
  Start();
  const ReadsOfMounts reads;
  ASSERT_TRUE(mount::ListMounts("/"));
  ASSERT_GT(reads.Count(), 0U) << "it would be seen";
  std::string many = BindOf(NewFolder("0"), "/0");
  ASSERT_TRUE(Add("a", many) && storage_->Remove(Id("a")));
  const size_t of_one = reads.Count();
  for (int i = 1; i < 10; ++i) {
    many += "," + BindOf(NewFolder(std::to_string(i)), "/" + std::to_string(i));
  }
  ASSERT_TRUE(Add("b", many) && storage_->Remove(Id("b")));
  EXPECT_LE(reads.Count(), of_one);
}

TEST_F(StorageTest, FilesAndRelativeSourcesAreBound) {
  Start();
  const std::string file = NewFolder("files") + "/resolv.conf";
  ASSERT_TRUE(WriteFile(file, "nameserver", 0644));
  const auto a = Add("a", BindOf(file, "/etc/resolv.conf") + "," + BindOf("rootfs/name", "/n"));
  ASSERT_TRUE(a) << a.error().message;
  EXPECT_EQ(ReadFile(Behind(SourceOf(*a, 0)), 100).value_or(""), "nameserver");
  EXPECT_EQ(ReadFile(Behind(SourceOf(*a, 1)), 100).value_or(""), "a");
}

TEST_F(StorageTest, WhatCannotBeIsRefusedByNameAndLeavesNothing) {
  Start();
  const std::string socket = NewFolder("run") + "/docker.sock";
  const auto listener = ListenUnix(socket);
  ASSERT_TRUE(listener);
  const std::string volume = NewFolder("volume");
  const auto refused = Add("a", BindOf(volume, "/vol") + "," + BindOf(socket, "/docker.sock"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr(socket), HasSubstr("'/docker.sock'"), HasSubstr("a socket")));
  EXPECT_THAT(*mount::ListMounts(Shared()), SizeIs(1)) << "the shared directory alone";
  EXPECT_TRUE(storage_->Remove(Id("a")));
  EXPECT_TRUE(Add("a", BindOf(volume, "/vol"))) << "the id is free";
  EXPECT_EQ(Add("a").error().code, Code::kAlreadyExists);
}

TEST_F(StorageTest, ThePodsSharedMemoryIsTheGuests) {
  Start();
  const std::string shm = NewFolder("shm");
  ASSERT_EQ(::mount("shm", shm.c_str(), "tmpfs", 0, "size=8m"), 0);
  const auto a = Add("a", BindOf(shm, "/dev/shm"));
  const auto b = Add("b", BindOf(shm, "/dev/shm"));
  EXPECT_EQ(::umount2(shm.c_str(), MNT_DETACH), 0);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(SourceOf(*a), SourceOf(*b)) << "one for all";
  const auto mount = std::ranges::find(a->attach.mounts, "tmpfs", &protocol::GuestMount::type);
  ASSERT_NE(mount, a->attach.mounts.end());
  EXPECT_EQ(mount->target, SourceOf(*a));
  EXPECT_THAT(mount->options, testing::IsSupersetOf({"mode=1777", "size=8388608"}));
}

TEST_F(StorageTest, HugePagesAreCountedForAllContainers) {
  Start();
  const auto limit = [](const std::string& size, uint64_t bytes) {
    return Format(
        R"(, "linux": {{"resources": {{"hugepageLimits": [{{"pageSize": "{}", "limit": {}}}]}}}})",
        size, bytes);
  };
  ASSERT_TRUE(Add("a", "", limit("2MB", 4 << 20)));
  const auto b = Add("b", "", limit("2MB", 6 << 20));
  ASSERT_TRUE(b);
  ASSERT_THAT(b->sysctls, SizeIs(1));
  EXPECT_EQ(b->sysctls[0].name, "vm.nr_hugepages");
  EXPECT_EQ(b->sysctls[0].value, "5");
  EXPECT_TRUE(Add("none", "", limit("1GB", 0)));
  EXPECT_THAT(Add("c", "", limit("1GB", 1 << 30)).error().message, HasSubstr("'1GB'"));
}

TEST_F(StorageTest, HugePagesOfTheNodeAreOnesOfTheGuest) {
  Start();
  const std::string pages = NewFolder("pages");
  if (::mount("none", pages.c_str(), "hugetlbfs", 0, "pagesize=2M,mode=0770,gid=77") != 0) {
    GTEST_SKIP() << "this kernel has no huge pages of 2 MiB: " << ErrnoName(errno);
  }
  const auto a = Add("a", BindOf(pages, "/pages"));
  EXPECT_EQ(::umount2(pages.c_str(), MNT_DETACH), 0);
  ASSERT_TRUE(a) << a.error().message;
  const auto mount = std::ranges::find(a->attach.mounts, "hugetlbfs", &protocol::GuestMount::type);
  ASSERT_NE(mount, a->attach.mounts.end());
  EXPECT_THAT(mount->options, testing::IsSupersetOf({"pagesize=2M", "mode=770", "gid=77"}));
}

TEST_F(StorageTest, AVmmWithoutFileSystemsSaysWhatToDo) {
  traits_.file_systems = false;
  Start();
  EXPECT_THAT(storage_->file_systems(), IsEmpty());
  EXPECT_THAT(context_.asked, IsEmpty()) << "no virtiofsd";
  const auto a = Add("a");
  EXPECT_EQ(a.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(a.error().message, AllOf(HasSubstr("no virtiofs"), HasSubstr("block device")));
}

TEST_F(StorageTest, TheNextEngineTakesItUp) {
  Start();
  const std::string volume = NewFolder("volume");
  const auto a = Add("a", BindOf(volume, "/vol"));
  ASSERT_TRUE(a);
  auto again = RestartEngine();
  ASSERT_TRUE(again) << again.error().message;
  storage_ = std::move(*again);
  EXPECT_EQ(Add("a").error().code, Code::kAlreadyExists);
  const auto b = Add("b", BindOf(volume, "/vol"));
  ASSERT_TRUE(b);
  EXPECT_EQ(SourceOf(*a), SourceOf(*b));
  EXPECT_NE(RootOf(*a), RootOf(*b));
  EXPECT_EQ(context_.Alive(), 1U) << "the same virtiofsd";
  ASSERT_TRUE(storage_->Remove(Id("a")));
  EXPECT_FALSE(Exists(Behind(RootOf(*a))));
}

// An engine that died between the record and the mount; and before virtiofsd was there.
TEST_F(StorageTest, WhatWasHalfMadeIsRemovedOrMade) {
  Start();
  const std::string volume = NewFolder("volume");
  const auto a = Add("a", BindOf(volume, "/vol"));
  ASSERT_TRUE(a);
  ASSERT_EQ(::umount2(Behind(SourceOf(*a)).c_str(), MNT_DETACH), 0);
  auto again = RestartEngine();
  ASSERT_TRUE(again);
  storage_ = std::move(*again);
  ASSERT_TRUE(Add("b", BindOf(volume, "/vol"))) << "with the item of a's record";
  EXPECT_TRUE(*mount::IsMountPoint(Behind(SourceOf(*a))));
  EXPECT_TRUE(storage_->Remove(Id("a")));
}

TEST_F(StorageTest, AStartThatWasNeverFinishedLeavesNothing) {
  EXPECT_EQ(Storage::Recover(context_, Request()).error().code, Code::kNotFound);
  NewFolder("sandbox/storage");
  NewFolder("sandbox/shared");
  EXPECT_EQ(Storage::Recover(context_, Request()).error().code, Code::kNotFound);
  EXPECT_THAT(*ListDirectory(directory_), IsEmpty());
}

TEST_F(StorageTest, ShutdownLeavesNothingAndMayComeAgain) {
  Start();
  const auto process = context_.SpawnedUnder("virtiofsd");
  const auto a = Add("a", BindOf(NewFolder("volume"), "/vol"));
  ASSERT_TRUE(a);
  const UniqueFd in_use(::open((Behind(RootOf(*a)) + "/name").c_str(), O_RDONLY | O_CLOEXEC));
  for (int i = 0; i < 2; ++i) {
    const Status gone = storage_->Shutdown();
    EXPECT_TRUE(gone) << gone.error().message;
    EXPECT_THAT(*ListDirectory(directory_), IsEmpty());
    EXPECT_THAT(*mount::ListMounts(folder_.path()), IsEmpty());
  }
  EXPECT_TRUE(process->Ended());
  EXPECT_THAT(context_.StoredNames(), IsEmpty());
  EXPECT_TRUE(storage_->Remove(Id("a")));
  EXPECT_TRUE(RemoveTree(directory_));
  EXPECT_TRUE(storage_->Shutdown()) << "with all of it gone";
  EXPECT_TRUE(storage_->Remove(Id("a")));
}

}  // namespace
}  // namespace gantry::vmm
