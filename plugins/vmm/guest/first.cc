// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/guest/first.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include <gantry/toolkit/container/rootfs.h>
#include <gantry/unique_fd.h>

namespace gantry::vmm::guest {
namespace {

constexpr const char* kNewRoot = "/newroot";

struct SystemMount {
  const char* type;
  const char* target;
  unsigned long flags;
  const char* data;
};

constexpr unsigned long kSafe = MS_NOSUID | MS_NODEV | MS_NOEXEC;
// Below /run devices are usable: containers' roots and their volumes are there.
constexpr SystemMount kMounts[] = {
    {"proc", "/proc", kSafe, nullptr},
    {"sysfs", "/sys", kSafe, nullptr},
    {"devtmpfs", "/dev", MS_NOSUID, "mode=0755"},
    {"devpts", "/dev/pts", MS_NOSUID | MS_NOEXEC, "mode=0620,gid=5,ptmxmode=0666"},
    {"tmpfs", "/dev/shm", MS_NOSUID | MS_NODEV, "mode=1777"},
    {"tmpfs", "/run", MS_NOSUID, "mode=0755"},
    {"cgroup2", "/sys/fs/cgroup", kSafe, "nsdelegate,memory_recursiveprot"}};

Status MountOne(const SystemMount& one) {
  if (::mkdir(one.target, 0755) != 0 && errno != EEXIST && errno != EROFS && errno != EPERM) {
    return FailErrno(errno, "make '{}'", one.target);
  }
  if (::mount(one.type, one.target, one.type, one.flags, one.data) != 0 && errno != EBUSY) {
    return FailErrno(errno, "mount '{}' on '{}'", one.type, one.target);
  }
  return {};
}

}  // namespace

Status LeaveInitramfs() {
  if (::mount(nullptr, "/", nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) != 0) {
    return FailErrno(errno, "make the initramfs read-only");
  }
  if (::mount("/", kNewRoot, nullptr, MS_BIND, nullptr) != 0) {
    return FailErrno(errno, "bind '/' on '{}'", kNewRoot);
  }
  return container::SwitchRoot(kNewRoot);
}

Status MountSystem() {
  for (const SystemMount& one : kMounts) {
    GANTRY_CHECK_OK(MountOne(one));
  }
  UniqueFd console(::open("/dev/console", O_RDWR | O_CLOEXEC | O_NOCTTY));
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (console && ::dup2(console.get(), fd) < 0) {
      return FailErrno(errno, "open the console");
    }
  }
  if (console.get() >= 0 && console.get() <= STDERR_FILENO) {
    static_cast<void>(console.release());  // It is one of them.
  }
  for (const char* folder : {kGuestFolder, kContainersFolder}) {
    if (::mkdir(folder, 0700) != 0 && errno != EEXIST) {
      return FailErrno(errno, "make '{}'", folder);
    }
  }
  return {};
}

}  // namespace gantry::vmm::guest
