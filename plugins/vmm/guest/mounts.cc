// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/guest/mounts.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string_view>

#include <gantry/deadline.h>
#include <gantry/format.h>
#include <gantry/toolkit/mount/mount.h>
#include <gantry/toolkit/mount/unmount.h>

#include "plugins/vmm/guest/bus.h"
#include "plugins/vmm/guest/devices.h"
#include "plugins/vmm/guest/modules.h"

namespace gantry::vmm::guest {
namespace {

constexpr const char* kScratch = "/run/gantry/scratch";
constexpr uint32_t kMaxWaitMs = 120'000;

/// The device file of a disk, in place of a mount. Again: it is the same disk.
Status MakeDeviceFile(const protocol::GuestMount& one, Deadline deadline) {
  GANTRY_TRY(const std::string disk, AwaitDisk(one.serial, deadline));
  struct stat info{};
  if (::stat(disk.c_str(), &info) != 0) {
    return FailErrno(errno, "look at '{}'", disk);
  }
  GANTRY_CHECK_OK(MakeDirectories(one.target.substr(0, one.target.rfind('/'))));
  if (::mknod(one.target.c_str(), S_IFBLK | 0600, info.st_rdev) != 0 && errno != EEXIST) {
    return FailErrno(errno, "make device file '{}'", one.target);
  }
  return {};
}

/// An overlay's own directories, in a layer that is as empty as it was made.
Status MakeLayer(const protocol::GuestMount& one) {
  for (const std::string& option : one.options) {
    for (const std::string_view name : {"upperdir=", "workdir="}) {
      if (option.starts_with(name)) {
        GANTRY_CHECK_OK(MakeDirectories(option.substr(name.size())));
      }
    }
  }
  return {};
}

/// What `AttachOne` has made and is empty, and a copy of a file of the host's: it would be memory
/// for good. One in a file system of the host's stays, which is read-only there.
void RemovePlace(const std::string& target) {
  struct stat info{};
  if (::rmdir(target.c_str()) != 0 && ::lstat(target.c_str(), &info) == 0 &&
      (S_ISBLK(info.st_mode) || S_ISREG(info.st_mode))) {
    ::unlink(target.c_str());
  }
}

/// The device of a machine that was restored comes when it goes on; until then the kernel does not
/// know its tag. Source: Linux, fs/fuse/virtio_fs.c, virtio_fs_get_tree.
Status MountShared(const std::string& target, const mount::Mount& mount, Deadline deadline) {
  GANTRY_TRY(DeviceEvents events, DeviceEvents::Listen());
  for (;;) {
    Status done = mount::MountAll(target, {mount}, kScratch);
    if (done || done.error().sys_errno != EINVAL || !events.Await(deadline)) {
      return done;
    }
  }
}

Status AttachOne(const protocol::GuestMount& one, Deadline deadline) {
  if (one.type == protocol::kDeviceFile) {
    return MakeDeviceFile(one, deadline);
  }
  GANTRY_TRY(const bool mounted, mount::IsMountPoint(one.target));
  if (mounted) {
    return {};
  }
  mount::Mount mount{.type = one.type, .source = one.source, .target = {}, .options = one.options};
  if (!one.serial.empty()) {
    GANTRY_TRY(mount.source, AwaitDisk(one.serial, deadline));
  }
  if (one.type == "overlay") {
    GANTRY_CHECK_OK(MakeLayer(one));
  }
  GANTRY_CHECK_OK(MakeDirectories(one.target));
  return one.type == "virtiofs" ? MountShared(one.target, mount, deadline)
                                : mount::MountAll(one.target, {mount}, kScratch);
}

}  // namespace

Status MakeDirectories(const std::string& path) {
  if (!path.starts_with('/')) {
    return Fail(Code::kInvalidArgument, "make directory '{}': not an absolute path", path);
  }
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (::mkdir(part.c_str(), 0755) != 0 && errno != EEXIST) {
      return FailErrno(errno, "make directory '{}'", part);
    }
    if (end == path.npos) {
      return {};
    }
  }
}

Status AttachMounts(const protocol::Attach& request) {
  const Deadline deadline = std::chrono::steady_clock::now() +
                            std::chrono::milliseconds(std::min(request.wait_ms, kMaxWaitMs));
  AwaitModules();
  for (size_t i = 0; i < request.mounts.size(); ++i) {
    const protocol::GuestMount& one = request.mounts[i];
    if (Status done = AttachOne(one, deadline); !done) {
      return std::unexpected(std::move(done).error().Within(
          Format("attach mount {} ('{}' on '{}')", i, one.type, one.target)));
    }
  }
  return {};
}

Status DetachMounts(const protocol::Detach& request) {
  for (const std::string& target : request.targets) {
    const dev_t disk = IsBusSilent() ? DiskAt(target) : 0;
    if (auto done = mount::UnmountTree(target); !done) {
      return std::unexpected(std::move(done).error().Within("detach"));
    }
    RemovePlace(target);
    if (disk != 0) {
      RemoveFromBus(disk);
    }
  }
  return {};
}

}  // namespace gantry::vmm::guest
