// SPDX-License-Identifier: Apache-2.0
//
// SpawnSteps: a root of the child's own, put together on a folder of the node's in a mount
// namespace that the child has alone. For all others what is mounted stays as it is.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include <gantry/format.h>

#include "core/os/spawn_steps.h"

namespace gantry::os {
namespace {

/// Any folder that is there: the root is mounted on it for a moment.
constexpr const char* kPlace = "/proc";
constexpr unsigned long kNoRights = MS_NOSUID | MS_NODEV | MS_NOEXEC;
constexpr mode_t kForAll = 0755;

/// Something to be shown in the root. All that needs memory is here before the child is made.
struct Shown {
  const RootPath& what;
  /// Where it comes to, and what that lies in, outermost first.
  std::string target;
  std::vector<std::string> parents;
};

Shown ShownOf(const RootPath& what) {
  Shown shown{.what = what, .target = kPlace + what.path, .parents = {}};
  for (size_t slash = what.path.find('/', 1); slash != std::string::npos;
       slash = what.path.find('/', slash + 1)) {
    shown.parents.push_back(kPlace + what.path.substr(0, slash));
  }
  return shown;
}

/// That it is there already is no error: it is in something that was shown before.
int Made(int result) { return result == 0 || errno == EEXIST ? 0 : errno; }

int MakePlace(const Shown& shown) {
  // First: what lies in something that was shown before is there, and so is the way to it.
  struct stat info{};
  if (stat(shown.what.path.c_str(), &info) != 0) {
    return errno;
  }
  for (const std::string& parent : shown.parents) {
    if (const int failed = Made(mkdir(parent.c_str(), kForAll)); failed != 0) {
      return failed;
    }
  }
  return Made(S_ISDIR(info.st_mode) ? mkdir(shown.target.c_str(), kForAll)
                                    : mknod(shown.target.c_str(), S_IFREG, 0));
}

/// What is mounted on it or below it, for good.
int MakeReadOnly(const char* mount) {
  mount_attr values{.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID,
                    .attr_clr = 0,
                    .propagation = MS_PRIVATE,
                    .userns_fd = 0};
  return ErrnoOf(mount_setattr(AT_FDCWD, mount, AT_RECURSIVE, &values, sizeof(values)));
}

/// The same of one mount, before Linux 5.12. What it bars stays barred.
int MakeOneReadOnly(const char* mount) {
  struct statfs info{};
  if (statfs(mount, &info) != 0) {
    return errno;
  }
  // The flags have the same numbers. Source: statfs(2), mount(2).
  const unsigned long barred = static_cast<unsigned long>(info.f_flags) & kNoRights;
  if (::mount(nullptr, mount, nullptr, MS_PRIVATE, nullptr) != 0) {
    return errno;
  }
  return ErrnoOf(::mount(nullptr, mount, nullptr,
                         MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | barred, nullptr));
}

int Show(const Shown& shown) {
  // Who is to pass there is not root.
  const mode_t callers = umask(0);
  const int no_place = MakePlace(shown);
  umask(callers);
  if (no_place != 0) {
    return no_place;
  }
  const char* const from = shown.what.path.c_str();
  const char* const target = shown.target.c_str();
  if (::mount(from, target, nullptr, MS_BIND | MS_REC, nullptr) != 0) {
    return errno;
  }
  const int failed = shown.what.writable ? 0 : MakeReadOnly(target);
  if (failed != ENOSYS) {
    return failed;
  }
  if (umount2(target, MNT_DETACH) != 0 || ::mount(from, target, nullptr, MS_BIND, nullptr) != 0) {
    return errno;
  }
  return MakeOneReadOnly(target);
}

int MountRoot(bool empty) {
  constexpr unsigned long kReadOnly = kNoRights | MS_RDONLY;
  return ErrnoOf(
      ::mount("none", kPlace, "tmpfs", empty ? kReadOnly : kNoRights,
              empty ? "size=4k,nr_inodes=1,mode=555" : "size=64k,nr_inodes=1k,mode=755"));
}

/// The old root comes to lie on the new one, and is taken away. Source: pivot_root(2).
int ChangeRoot() {
  if (syscall(SYS_pivot_root, ".", ".") == 0) {
    return ErrnoOf(umount2(".", MNT_DETACH));
  }
  if (errno != EINVAL) {
    return errno;
  }
  // The node runs from its initramfs: what is there stays, out of reach.
  if (::mount(".", "/", nullptr, MS_MOVE, nullptr) != 0) {
    return errno;
  }
  return ErrnoOf(chroot("."));
}

}  // namespace

void SpawnSteps::AddOwnRoot() {
  if (!request_.empty_root) {
    return;
  }
  Add("unshare the mounts", [] { return ErrnoOf(unshare(CLONE_NEWNS)); });
  // What comes to the node's later comes to those that are shown as writable.
  Add("keep the mounts from the node's",
      [] { return ErrnoOf(::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr)); });
  const bool empty = request_.root_paths.empty();
  Add("mount a root of its own", [empty] { return MountRoot(empty); });
  for (const RootPath& path : request_.root_paths) {
    Add(Format("show '{}' in a root of its own", path.path),
        [shown = ShownOf(path)] { return Show(shown); });
  }
  if (!empty) {
    Add("make a root of its own read-only", [] {
      return ErrnoOf(
          ::mount(nullptr, kPlace, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | kNoRights, nullptr));
    });
  }
  Add("enter a root of its own", [] { return ErrnoOf(chdir(kPlace)); });
  Add("change to a root of its own", ChangeRoot);
  Add("enter a root of its own", [] { return ErrnoOf(chdir("/")); });
}

}  // namespace gantry::os
