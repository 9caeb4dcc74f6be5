// SPDX-License-Identifier: Apache-2.0
//
// What a machine has on the node's file systems: its directory, its user, its guest's image.
#include <sys/stat.h>
#include <unistd.h>

#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/mount/unmount.h>

#include "core/os/fs.h"
#include "plugins/vmm/machine/directory.h"
#include "plugins/vmm/machine/disk_files.h"
#include "plugins/vmm/machine/image.h"
#include "plugins/vmm/machine/programs.h"
#include "plugins/vmm/machine/users.h"

namespace gantry::vmm {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class MachineFiles : public testing::Test {
 protected:
  MachineFiles() {
    options_.directory = folder_.path() + "/v";
    options_.first_user = 5000;
    options_.users = 3;
  }

  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "whoever mounts and gives files away is root";
    }
  }

  std::string NewSandbox(const std::string& name) {
    const std::string path = options_.directory + "/" + name;
    EXPECT_TRUE(MakeSandboxDirectory(path));
    return path;
  }

  os::TempDir folder_ = os::TempDir::Create().value();
  VmmOptions options_;
};

struct stat Info(const std::string& path) {
  struct stat info{};
  EXPECT_EQ(lstat(path.c_str(), &info), 0) << path;
  return info;
}

TEST_F(MachineFiles, ItsUserGetsToItsOwnAndToNothingElse) {
  const MachineUser user = {.uid = 5001, .gid = 5002};
  const std::string sandbox = NewSandbox("a");
  const MachineDirectory directory(sandbox);
  ASSERT_TRUE(directory.Make(user, false));
  EXPECT_EQ(Info(sandbox).st_uid, 0U);
  EXPECT_EQ(Info(sandbox).st_gid, 5002U);
  EXPECT_EQ(Info(sandbox).st_mode & 0777, 0710U) << "it passes, and lists nothing";
  EXPECT_EQ(Info(directory.vm()).st_mode & 0777, 0710U);
  EXPECT_EQ(Info(directory.vm()).st_uid, 0U) << "it replaces nothing that the engine opens";
  EXPECT_EQ(Info(directory.console()).st_uid, 5001U);
  EXPECT_EQ(Info(directory.sockets()).st_uid, 0U);
  const auto listener = MachineDirectory::Listen(directory.port(1025), user);
  ASSERT_TRUE(listener) << listener.error().message;
  EXPECT_EQ(Info(directory.port(1025)).st_uid, 5001U);
  EXPECT_EQ(Info(directory.port(1025)).st_mode & 0777, 0600U);
  EXPECT_TRUE(directory.Remove());
  EXPECT_FALSE(Exists(sandbox));
}

// As Cloud Hypervisor and Firecracker do, which get no descriptors of disks.
TEST_F(MachineFiles, AFileOfRootsIsOpenedByTheUserWhoseDiskItIs) {
  const MachineUser user = {.uid = 5001, .gid = 5002};
  const std::string secret = folder_.path() + "/only-roots";
  ASSERT_EQ(mkdir(secret.c_str(), 0700), 0);
  const std::string file = secret + "/disk";
  ASSERT_TRUE(WriteFile(file, "x", 0600));
  const MachineDirectory directory(NewSandbox("a"));
  ASSERT_TRUE(directory.Make(user, true));
  for (int round = 0; round < 2; ++round) {
    const auto place = LetOpen(directory, user, "d1", file);
    ASSERT_TRUE(place) << place.error().message;
    EXPECT_EQ(Info(*place).st_uid, 5001U);
    EXPECT_EQ(Info(*place).st_ino, Info(file).st_ino) << "by which a guest may know it";
  }
  EXPECT_EQ(Info(file).st_uid, 0U) << "for all others it is root's still";
  const auto roots = LetOpen(directory, {}, "d2", file);
  ASSERT_TRUE(roots) << roots.error().message;
  EXPECT_THAT(*roots, testing::StartsWith(directory.vm())) << "in the VMM's own root, too";
  EXPECT_EQ(Info(*roots).st_uid, 0U);
  EXPECT_EQ(LetOpen(directory, user, "d3", "/nowhere").error().code, Code::kNotFound);
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(CloseFile(directory, "d1"));
  }
  EXPECT_TRUE(LetOpen(directory, user, "d4", file)) << "and with the directory it is gone, too";
  EXPECT_TRUE(directory.Remove());
  EXPECT_TRUE(Exists(file));
}

// A VMM that was made before its pod has the way to its directory as it was then.
TEST_F(MachineFiles, ASocketIsShownWhereTheVmmHasItsDirectory) {
  const MachineUser user = {.uid = 5001, .gid = 5001};
  const std::string socket = folder_.path() + "/served";
  const auto listener = MachineDirectory::Listen(socket, user);
  ASSERT_TRUE(listener) << listener.error().message;
  const MachineDirectory first(NewSandbox("a"));
  ASSERT_TRUE(first.Make(user, false));
  EXPECT_EQ(first.Show(socket, "fs-x").value(), first.vm() + "/fs-x");
  ASSERT_TRUE(first.NoteOwnRoot());
  const MachineDirectory second(NewSandbox("b"));
  ASSERT_TRUE(second.TakeFrom(first, user));
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(second.Show(socket, "fs-y").value(), first.vm() + "/fs-y");
    EXPECT_EQ(Info(second.vm() + "/fs-y").st_ino, Info(socket).st_ino);
  }
  EXPECT_EQ(second.Show("/nowhere", "fs-z").error().code, Code::kNotFound);
  EXPECT_TRUE(second.Remove());
  EXPECT_TRUE(Exists(socket));
}

TEST_F(MachineFiles, AVmmThatListensItselfMakesSocketsInOneFolder) {
  const MachineUser user = {.uid = 5001, .gid = 5001};
  const MachineDirectory directory(NewSandbox("a"));
  ASSERT_TRUE(directory.Make(user, true));
  EXPECT_EQ(Info(directory.sockets()).st_uid, 5001U);
  EXPECT_TRUE(directory.Remove());
}

TEST_F(MachineFiles, AGuestCannotFillTheNodesMemory) {
  const MachineDirectory directory(NewSandbox("a"));
  ASSERT_TRUE(directory.Make({}, false));
  const Status filled = WriteFile(directory.console(), std::string(size_t{4} << 20, 'x'), 0600);
  ASSERT_FALSE(filled);
  EXPECT_EQ(filled.error().sys_errno, ENOSPC);
  EXPECT_TRUE(directory.Remove());
  EXPECT_TRUE(directory.Remove()) << "again";
}

TEST_F(MachineFiles, MadeAnewItIsEmpty) {
  const MachineDirectory directory(NewSandbox("a"));
  ASSERT_TRUE(directory.Make({}, false));
  ASSERT_TRUE(WriteFile(directory.vm() + "/old", "", 0600));
  ASSERT_TRUE(directory.Make({}, false));
  EXPECT_FALSE(Exists(directory.vm() + "/old"));
  EXPECT_TRUE(directory.Remove());
  EXPECT_FALSE(*mount::IsMountPoint(directory.vm())) << "not one on the other";
}

TEST_F(MachineFiles, APathThatIsTooLongForSocketsIsRefusedByName) {
  const std::string longest(80, 'x');
  const MachineDirectory directory(folder_.path() + "/" + longest);
  const Status made = directory.Make({}, false);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kInvalidArgument);
  EXPECT_THAT(made.error().message, HasSubstr(longest));
}

TEST_F(MachineFiles, ASandboxesDirectoryIsShortAndItsOwn) {
  const std::string id(64, 'a');
  const std::string one = SandboxDirectory(options_, "k8s.io", id);
  EXPECT_EQ(one, SandboxDirectory(options_, "k8s.io", id));
  EXPECT_NE(one, SandboxDirectory(options_, "default", id));
  EXPECT_NE(one, SandboxDirectory(options_, "k8s.io", "b"));
  EXPECT_LE(one.size(), options_.directory.size() + 17);
}

TEST_F(MachineFiles, EachVmHasAUserOfItsOwn) {
  std::set<uint32_t> users;
  for (const char* name : {"a", "b", "c"}) {
    const auto user = TakeUser(options_, NewSandbox(name));
    ASSERT_TRUE(user && *user) << name;
    users.insert(**user);
  }
  EXPECT_EQ(users, (std::set<uint32_t>{5000, 5001, 5002}));
  const auto again = TakeUser(options_, options_.directory + "/b");
  EXPECT_TRUE(users.contains(**again)) << "the same for the same VM";
  const auto none = TakeUser(options_, NewSandbox("d"));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kResourceExhausted);
  EXPECT_THAT(none.error().message, HasSubstr("'users'"));
  FreeUser(options_, options_.directory + "/b", **again);
  EXPECT_EQ(**TakeUser(options_, options_.directory + "/d"), **again);
}

TEST_F(MachineFiles, AUserWhoseSandboxIsGoneIsFree) {
  options_.users = 1;
  const std::string gone = NewSandbox("a");
  ASSERT_TRUE(TakeUser(options_, gone));
  const std::string next = NewSandbox("b");
  ASSERT_FALSE(TakeUser(options_, next));
  ASSERT_EQ(rmdir(gone.c_str()), 0);
  const auto user = TakeUser(options_, next);
  ASSERT_TRUE(user) << user.error().message;
  EXPECT_EQ(**user, 5000U);
}

TEST_F(MachineFiles, TheGroupOfKvmIsTheVms) {
  const std::string kvm = folder_.path() + "/kvm";
  ASSERT_TRUE(WriteFile(kvm, "", 0660));
  ASSERT_EQ(chown(kvm.c_str(), 0, 4242), 0);
  EXPECT_EQ(UserOf(5000, Accelerator::kKvm, kvm)->gid, 4242U);
  EXPECT_EQ(UserOf(5000, Accelerator::kTcg, kvm)->gid, 5000U);
  ASSERT_EQ(chmod(kvm.c_str(), 0666), 0);
  EXPECT_EQ(UserOf(5000, Accelerator::kKvm, kvm)->gid, 5000U);
  ASSERT_EQ(chmod(kvm.c_str(), 0600), 0);
  const auto refused = UserOf(5000, Accelerator::kKvm, kvm);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(refused.error().message, AllOf(HasSubstr(kvm), HasSubstr("users: 0")));
  EXPECT_TRUE(UserOf(std::nullopt, Accelerator::kKvm, kvm)) << "root needs no group";
}

TEST_F(MachineFiles, WithoutUsersItIsRoot) {
  options_.users = 0;
  EXPECT_EQ(*TakeUser(options_, NewSandbox("a")), std::nullopt);
}

TEST_F(MachineFiles, TheInstalledImageIsTakenWhereNoneIsNamed) {
  const std::string images = folder_.path();
  ASSERT_TRUE(WriteFile(images + "/kernel", "k", 0644));
  ASSERT_TRUE(WriteFile(images + "/initrd", "i", 0644));
  ASSERT_TRUE(WriteFile(images + "/versions", "kernel 6.1\nagent 0123\n", 0644));
  const auto image = FindImage(options_, images);
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_EQ(image->kernel, images + "/kernel");
  EXPECT_EQ(image->versions, "kernel 6.1, agent 0123");
  options_.initrd = images + "/kernel";
  EXPECT_EQ(FindImage(options_, images)->initrd, images + "/kernel");
  EXPECT_EQ(FindImage(options_, images)->versions, "") << "it says nothing of another one";
}

TEST_F(MachineFiles, TheImageIsNamedWithoutAWayBack) {
  const std::string images = folder_.path() + "/image";
  ASSERT_EQ(mkdir(images.c_str(), 0755), 0);
  ASSERT_TRUE(WriteFile(images + "/kernel", "k", 0644));
  ASSERT_TRUE(WriteFile(images + "/initrd", "i", 0644));
  options_.kernel = images + "/../image/kernel";
  const auto image = FindImage(options_, images + "/.");
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_EQ(image->kernel, images + "/kernel");
  EXPECT_EQ(image->initrd, images + "/initrd");
}

TEST_F(MachineFiles, AKernelOfAnotherMachineIsNamed) {
  const std::string images = folder_.path();
  ASSERT_TRUE(WriteFile(images + "/initrd", "i", 0644));
  std::string elf(
      "\x7f"
      "ELF\2\1\1");
  elf.resize(64);
  elf[18] = static_cast<char>(183);
  for (const std::string& head :
       {elf, std::string(56, '\0') + "ARM\x64", std::string(56, '\0') + "RSC\x05"}) {
    ASSERT_TRUE(WriteFile(images + "/kernel", head, 0644));
    const auto image = FindImage(options_, images);
    ASSERT_FALSE(image);
    EXPECT_EQ(image.error().code, Code::kFailedPrecondition);
    EXPECT_THAT(image.error().message, AllOf(HasSubstr(images + "/kernel"), HasSubstr("x86-64")));
  }
  elf[18] = 62;
  ASSERT_TRUE(WriteFile(images + "/kernel", elf, 0644));
  EXPECT_TRUE(FindImage(options_, images));
}

TEST_F(MachineFiles, WhatIsMissingOfTheImageIsSaidWithItsOption) {
  const auto none = FindImage(options_, "/no/such");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(none.error().message,
              AllOf(HasSubstr("/no/such/kernel"), HasSubstr("'kernel'"), HasSubstr("install")));
  options_.kernel = "/also/not";
  EXPECT_THAT(FindImage(options_, "/no/such").error().message,
              AllOf(HasSubstr("/also/not"), HasSubstr("option 'kernel'")));
}

}  // namespace
}  // namespace gantry::vmm
