// SPDX-License-Identifier: Apache-2.0
//
// What is in /dev, and what is masked or read-only.
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>

#include <gantry/format.h>

#include "tests/unit/toolkit/container/container_test.h"

namespace gantry::container {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class DevicesTest : public ContainerTest {};

GANTRY_IN_ALL_WORLDS(DevicesTest);

class DevicesAsRootTest : public ContainerTest {};

GANTRY_AS_ROOT(DevicesAsRootTest);

oci::Device DeviceOf(const std::string& path, char type, uint32_t major, uint32_t minor) {
  oci::Device device;
  device.path = path;
  device.type = type;
  device.major = major;
  device.minor = minor;
  return device;
}

TEST_P(DevicesTest, DefaultOnesAreThereAndWork) {
  EXPECT_EQ(Look(Plain(),
                 [] {
                   std::string seen;
                   for (const char* name : {"null", "zero", "full", "random", "urandom", "tty"}) {
                     const std::string path = Format("/dev/{}", name);
                     seen += Kind(path) + " ";
                   }
                   return seen + TryToWrite("/dev/null") + TryToWrite("/dev/urandom");
                 }),
            "1:3 666 1:5 666 1:7 666 1:8 666 1:9 666 5:0 666 OKOK");
}

TEST_P(DevicesTest, LinksAreThere) {
  EXPECT_EQ(Look(Plain(),
                 [] {
                   return Kind("/dev/fd") + Kind("/dev/stdin") + Kind("/dev/stdout") +
                          Kind("/dev/stderr") + Kind("/dev/ptmx") + Kind("/dev/core");
                 }),
            std::string("l -> /proc/self/fdl -> /proc/self/fd/0l -> /proc/self/fd/1") +
                "l -> /proc/self/fd/2l -> pts/ptmx" +
                (std::filesystem::exists("/proc/kcore") ? "l -> /proc/kcore" : "ENOENT"));
}

TEST_P(DevicesAsRootTest, OnesOfTheSpecAreMadeWithOwnerAndMode) {
  RootfsRequest request = Plain();
  oci::Device loop = DeviceOf("/dev/blocks/loop7", 'b', 7, 7);
  loop.mode = 0640;
  loop.uid = 12;
  loop.gid = 34;
  request.settings.devices = {loop, DeviceOf("/dev/pipe", 'p', 0, 0),
                              DeviceOf("/dev/unbuffered", 'u', 1, 5)};

  EXPECT_EQ(Look(request,
                 [] {
                   struct stat info{};
                   stat("/dev/blocks/loop7", &info);
                   return Format("{} {}:{}, {}, {}", Kind("/dev/blocks/loop7"), info.st_uid,
                                 info.st_gid, Kind("/dev/pipe"), Kind("/dev/unbuffered"));
                 }),
            "7:7 640 12:34, p 666, 1:5 666");
}

/// As where the root's file system takes none.
void LoseMknod() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3]{};
  syscall(SYS_capget, &header, data);
  data[CAP_TO_INDEX(CAP_MKNOD)].effective &= ~CAP_TO_MASK(CAP_MKNOD);
  syscall(SYS_capset, &header, data);
}

TEST_P(DevicesAsRootTest, AreBoundWhereTheRootTakesNone) {
  RootfsRequest request = Plain();
  // /dev is the root's then, and what is made there stays.
  request.mounts.pop_back();
  Steps steps;
  steps.first = LoseMknod;
  const auto look = [] {
    return Kind("/dev/null") + TryToWrite("/dev/null") + Kind("/dev/full") +
           TryToWrite("/dev/full");
  };
  EXPECT_EQ(Look(request, look, steps), "1:3 666OK1:7 666OK");
  EXPECT_EQ(Look(request, look, steps), "1:3 666OK1:7 666OK") << "in a root that was used before";

  request.settings.devices = {DeviceOf("/dev/of-nobody", 'c', 1, 3)};
  EXPECT_THAT(Look(
                  request, [] { return std::string(); }, steps),
              AllOf(HasSubstr("device '/dev/of-nobody'"), HasSubstr("takes no devices"),
                    HasSubstr("ENOENT")));
}

TEST_P(DevicesTest, OnesOfTheSpecAreFoundWhereTheyCannotBeMade) {
  RootfsRequest request = Plain();
  request.settings.devices = {DeviceOf("/dev/kmsg", 'c', 1, 11), DeviceOf("/dev/pipe", 'p', 0, 0)};

  EXPECT_THAT(Look(request, [] { return Kind("/dev/kmsg") + " " + Kind("/dev/pipe"); }),
              AllOf(StartsWith("1:11 "), HasSubstr(" p 666")));
}

TEST_P(DevicesTest, NodesFileMustBeThatDevice) {
  RootfsRequest request = Plain();
  request.binds_devices = true;
  request.settings.devices = {DeviceOf("/dev/null", 'c', 1, 11)};
  EXPECT_THAT(
      Look(request, [] { return std::string(); }),
      AllOf(StartsWith("FAILED_PRECONDITION: "), HasSubstr("'/dev/null'"), HasSubstr("c 1:11")));

  request.settings.devices = {DeviceOf("/dev/no-such-device", 'c', 1, 11)};
  EXPECT_THAT(Look(request, [] { return std::string(); }), StartsWith("NOT_FOUND: "));
}

TEST_P(DevicesTest, WhatCannotBeIsTold) {
  const auto error = [this](const oci::Device& device) {
    RootfsRequest request = Plain();
    request.settings.devices = {device};
    return Look(request, [] { return std::string("none"); });
  };

  EXPECT_THAT(error(DeviceOf("dev/x", 'c', 1, 3)), StartsWith("INVALID_ARGUMENT: device 'dev/x'"));
  EXPECT_THAT(error(DeviceOf("/dev/..", 'c', 1, 3)), StartsWith("INVALID_ARGUMENT: "));
  EXPECT_THAT(error(DeviceOf("/dev/x", 'q', 1, 3)), HasSubstr("type 'q'"));
}

TEST_P(DevicesAsRootTest, SomethingElseInItsPlaceIsToldAndStays) {
  RootfsRequest request = Plain();
  request.mounts.pop_back();
  MakeFile("/dev/null", "not a device");

  EXPECT_THAT(
      Look(request, [] { return std::string(); }),
      AllOf(StartsWith("FAILED_PRECONDITION: device '/dev/null'"), HasSubstr("something else")));
  EXPECT_EQ(TextOf(InRoot("/dev/null")), "not a device");
}

TEST_P(DevicesAsRootTest, AreMadeInARootWithoutDev) {
  RootfsRequest request = Plain();
  request.mounts.pop_back();

  EXPECT_EQ(Look(request, [] { return Kind("/dev") + " " + Kind("/dev/null"); }), "d 755 1:3 666");
  // Again, in the same root.
  EXPECT_EQ(Look(request, [] { return Kind("/dev/null"); }), "1:3 666");
}

TEST_P(DevicesTest, NothingIsMadeInADevThatIsBound) {
  NodeDir("dev");
  RootfsRequest request = Plain();
  request.mounts.back() = Bind("dev", "/./dev/");
  request.settings.devices = {DeviceOf("/dev/kmsg", 'c', 1, 11)};

  EXPECT_EQ(Look(request, [] { return Kind("/dev/null") + Kind("/dev/fd") + Kind("/dev/kmsg"); }),
            "ENOENTENOENTENOENT");
}

TEST_P(DevicesTest, PathsAreReadOnly) {
  MakeFile("/etc/dir/file", "text");
  MakeFile("/etc/file", "text");
  RootfsRequest request = Plain();
  request.settings.readonly_paths = {"/etc/dir", "/etc/file", "/missing", "/etc/file/missing"};

  EXPECT_EQ(Look(request,
                 [] {
                   return Format("{} {} {} {} {}", TryToMake("/etc/dir/new"),
                                 TryToWrite("/etc/dir/file"), TryToWrite("/etc/file"),
                                 TextOf("/etc/file"), TryToMake("/etc/new"));
                 }),
            "EROFS EROFS EROFS text OK");
}

TEST_P(DevicesTest, PathsAreMasked) {
  MakeFile("/etc/dir/file", "secret");
  MakeFile("/etc/file", "secret");
  MakeLink("/etc/link", "file2");
  MakeFile("/etc/file2", "secret");
  RootfsRequest request = Plain();
  request.settings.masked_paths = {"/etc/dir", "/etc/file", "/etc/link", "/missing"};

  EXPECT_EQ(Look(request,
                 [] {
                   return Format("{} {} {} {} {}", Kind("/etc/dir/file"), TryToMake("/etc/dir/new"),
                                 Kind("/etc/file"), Kind("/etc/file2"), Kind("/missing"));
                 }),
            "ENOENT EROFS 1:3 666 1:3 666 ENOENT");
}

TEST_P(DevicesTest, KernelsFilesAreMasked) {
  RootfsRequest request = Plain();
  request.settings.masked_paths = {"/proc/keys", "/proc/irq"};
  request.settings.readonly_paths = {"/proc/sys"};

  EXPECT_EQ(Look(request,
                 [] {
                   return Format("{} {} {}", Kind("/proc/keys"), Kind("/proc/irq/0"),
                                 MountAt("/proc/sys").substr(0, 2));
                 }),
            "1:3 666 ENOENT ro");
}

TEST_P(DevicesAsRootTest, MaskIsNoFileOfTheImages) {
  // The image's /dev is the container's: its null could be any file.
  RootfsRequest request = Plain();
  request.settings.masked_paths = {"/proc/keys"};
  Steps steps;
  steps.entered = [](Rootfs&) -> Status {
    if (unlink("/dev/null") != 0 || mknod("/dev/null", S_IFCHR | 0666, makedev(1, 5)) != 0) {
      return FailErrno(errno, "exchange the device");
    }
    return {};
  };

  EXPECT_THAT(Look(
                  request, [] { return Kind("/proc/keys"); }, steps),
              AllOf(StartsWith("FAILED_PRECONDITION: mask '/proc/keys'"), HasSubstr("c 1:3")));

  steps.entered = [](Rootfs&) -> Status {
    if (unlink("/dev/null") != 0 || symlink("/dev/zero", "/dev/null") != 0) {
      return FailErrno(errno, "exchange the device");
    }
    return {};
  };
  EXPECT_THAT(Look(
                  request, [] { return Kind("/proc/keys"); }, steps),
              StartsWith("FAILED_PRECONDITION: mask '/proc/keys'"));
}

}  // namespace
}  // namespace gantry::container
