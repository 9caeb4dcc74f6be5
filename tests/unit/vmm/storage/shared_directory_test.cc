// SPDX-License-Identifier: Apache-2.0
//
// With real mounts, looked at by a process in a mount namespace of its own, as virtiofsd is.
#include "plugins/vmm/storage/shared_directory.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/testing/sandbox_context.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/mount/mount_info.h>

#include "core/os/fs.h"

namespace gantry::vmm {
namespace {

using testing::IsEmpty;

class SharedDirectoryTest : public testing::Test {
 protected:
  SharedDirectoryTest() {
    EXPECT_TRUE(os::MakeDirs(source_, 0755));
    EXPECT_TRUE(WriteFile(source_ + "/file", "words", 0644));
    const Status made = shared_.Make();
    EXPECT_TRUE(made) << made.error().message;
  }

  ~SharedDirectoryTest() override {
    EXPECT_TRUE(shared_.Remove());
    ::umount2((source_ + "/below").c_str(), MNT_DETACH);
  }

  Status Bind(const std::string& name, BindRequest request, const std::string& what = "") {
    const UniqueFd fd(::open((source_ + what).c_str(), O_PATH | O_CLOEXEC));
    request.source = fd.get();
    return shared_.Bind(name, request);
  }

  Status BindDirectory(const std::string& name) { return Bind(name, {.directory = true}); }

  std::string In(const std::string& name) const { return shared_.path() + "/" + name; }

  /// The folder as virtiofsd's namespace has it.
  std::string SeenBy(const HostProcess& process) const {
    return Format("/proc/{}/root{}", process.pid().value, shared_.path());
  }

  std::shared_ptr<HostProcess> Watcher() {
    SpawnRequest request;
    request.argv = {"/bin/sleep", "1000"};
    request.new_namespaces = CLONE_NEWNS;
    request.mounts = MountPropagation::kSlave;
    return context_.Spawn(std::move(request)).value();
  }

  FakeSandboxContext context_;
  os::TempDir folder_ = os::TempDir::Create().value();
  std::string source_ = folder_.path() + "/source";
  SharedDirectory shared_{folder_.path() + "/shared"};
};

// Reference of the vmm backend, 2.3: what is mounted later has to be seen.
TEST_F(SharedDirectoryTest, WhoHasStartedBeforeSeesWhatIsBoundLater) {
  const auto watcher = Watcher();
  ASSERT_TRUE(BindDirectory("1"));
  EXPECT_EQ(ReadFile(SeenBy(*watcher) + "/1/file", 100).value_or(""), "words");
  ASSERT_TRUE(Bind("2", {}, "/file"));
  EXPECT_EQ(ReadFile(SeenBy(*watcher) + "/2", 100).value_or(""), "words");
  ASSERT_TRUE(shared_.Unbind("1"));
  EXPECT_FALSE(Exists(SeenBy(*watcher) + "/1"));
}

// A guest that was taken over must not fill the node's memory.
TEST_F(SharedDirectoryTest, NothingCanBeWrittenBesideTheMounts) {
  ASSERT_TRUE(BindDirectory("1"));
  EXPECT_EQ(WriteFile(In("mine"), "x", 0600).error().sys_errno, EROFS);
  EXPECT_EQ(::mkdir(In("mine").c_str(), 0700), -1);
  EXPECT_EQ(errno, EROFS);
  EXPECT_TRUE(WriteFile(In("1/mine"), "x", 0600)) << "but in them";
  EXPECT_TRUE(Exists(source_ + "/mine"));
}

TEST_F(SharedDirectoryTest, WhatIsReadOnlyIsSoForTheNodesProcesses) {
  ASSERT_TRUE(Bind("1", {.directory = true, .read_only = true}));
  EXPECT_EQ(WriteFile(In("1/mine"), "x", 0600).error().sys_errno, EROFS);
  EXPECT_TRUE(WriteFile(source_ + "/mine", "x", 0600)) << "it is the bind that is";
}

TEST_F(SharedDirectoryTest, HasNoDevicesAndNoRightsOfFiles) {
  ASSERT_TRUE(BindDirectory("1"));
  const auto mounts = mount::ListMounts(In("1"));
  ASSERT_EQ(mounts->size(), 1U);
  EXPECT_THAT(mounts->front().options, testing::HasSubstr("nosuid,nodev"));
}

TEST_F(SharedDirectoryTest, MountsBelowComeAlongWhereTheyAreWanted) {
  ASSERT_TRUE(os::MakeDirs(source_ + "/below", 0755));
  ASSERT_EQ(::mount("tmpfs", (source_ + "/below").c_str(), "tmpfs", 0, nullptr), 0);
  ASSERT_TRUE(WriteFile(source_ + "/below/deep", "", 0600));
  ASSERT_TRUE(Bind("all", {.directory = true, .recursive = true}));
  ASSERT_TRUE(Bind("one", {.directory = true, .recursive = false}));
  EXPECT_TRUE(Exists(In("all/below/deep")));
  EXPECT_FALSE(Exists(In("one/below/deep")));
}

// Of `HostToContainer`: a mount of the node's comes along, and one of the others does not.
TEST_F(SharedDirectoryTest, FollowsTheNodeWhereItIsTo) {
  ASSERT_EQ(::mount(source_.c_str(), source_.c_str(), nullptr, MS_BIND, nullptr), 0);
  ASSERT_EQ(::mount(nullptr, source_.c_str(), nullptr, MS_SHARED, nullptr), 0);
  ASSERT_TRUE(os::MakeDirs(source_ + "/below", 0755));
  ASSERT_TRUE(Bind("follows", {.directory = true, .follows = true}));
  ASSERT_TRUE(Bind("stays", {.directory = true}));
  ASSERT_EQ(::mount("tmpfs", (source_ + "/below").c_str(), "tmpfs", 0, nullptr), 0);
  ASSERT_TRUE(WriteFile(source_ + "/below/deep", "", 0600));
  EXPECT_TRUE(Exists(In("follows/below/deep")));
  EXPECT_FALSE(Exists(In("stays/below/deep")));
  EXPECT_EQ(::umount2(source_.c_str(), MNT_DETACH), 0);
}

TEST_F(SharedDirectoryTest, OwnersAreMapped) {
  const Status bound =
      Bind("1", {.directory = true,
                 .uid_mappings = {{.host_id = 100'000, .container_id = 0, .length = 65'536}},
                 .gid_mappings = {{.host_id = 100'000, .container_id = 0, .length = 65'536}}});
  ASSERT_TRUE(bound) << bound.error().message;
  struct stat info{};
  ASSERT_EQ(::stat(In("1/file").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 100'000U);
}

// A process that works in it (virtiofsd has descriptors of what the guest knows) holds nobody up.
TEST_F(SharedDirectoryTest, IsRemovedThoughItIsInUse) {
  ASSERT_TRUE(BindDirectory("1"));
  const UniqueFd in_use(::open(In("1/file").c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(in_use);
  ASSERT_TRUE(shared_.Unbind("1"));
  EXPECT_FALSE(Exists(In("1")));
  ASSERT_TRUE(BindDirectory("2"));
  ASSERT_TRUE(shared_.Remove());
  EXPECT_THAT(*mount::ListMounts(folder_.path()), IsEmpty());
  EXPECT_FALSE(Exists(shared_.path()));
  EXPECT_TRUE(Exists(source_ + "/file")) << "nothing of the node's is touched";
}

TEST_F(SharedDirectoryTest, AgainIsSuccess) {
  EXPECT_TRUE(shared_.Make());
  ASSERT_TRUE(BindDirectory("1"));
  EXPECT_TRUE(BindDirectory("1"));
  EXPECT_EQ(mount::ListMounts(shared_.path())->size(), 2U);
  EXPECT_TRUE(shared_.Unbind("1"));
  EXPECT_TRUE(shared_.Unbind("1"));
  EXPECT_TRUE(shared_.Remove());
  EXPECT_TRUE(shared_.Unbind("1"));
  EXPECT_TRUE(shared_.Remove());
}

}  // namespace
}  // namespace gantry::vmm
