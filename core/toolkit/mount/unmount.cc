// SPDX-License-Identifier: Apache-2.0
#include <limits.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <string_view>
#include <unordered_map>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/mount/mount_info.h>
#include <gantry/toolkit/mount/unmount.h>
#include <gantry/toolkit/process/backoff.h>

namespace gantry::mount {
namespace {

// A mount is often busy for a moment only: its last process is just ending.
constexpr int kBusyTries = 20;
constexpr Backoff::Terms kBusy{.no_event = "umount2: EBUSY has no end that one could wait for",
                               .first = std::chrono::milliseconds(1),
                               .longest = std::chrono::milliseconds(5)};
// New mounts may appear while the old ones go; not endlessly.
constexpr int kMaxRounds = 16;

// `path` with its parents' symlinks resolved but not its own; empty where
// nothing can be mounted.
Result<std::string> Canonical(const std::string& path) {
  std::string_view whole = path;
  while (whole.size() > 1 && whole.ends_with('/')) {
    whole.remove_suffix(1);
  }
  const size_t slash = whole.rfind('/');
  const std::string_view name = whole.substr(slash + 1);
  if (!whole.starts_with('/') || name == "." || name == "..") {
    return Fail(Code::kInvalidArgument, "unmount '{}': not an absolute path with a name", path);
  }
  const std::string parent(slash == 0 ? "/" : whole.substr(0, slash));
  char resolved[PATH_MAX];
  if (realpath(parent.c_str(), resolved) == nullptr) {
    if (errno == ENOENT || errno == ENOTDIR) {
      return std::string();
    }
    return FailErrno(errno, "unmount '{}'", path);
  }
  std::string canonical = std::string(resolved) == "/" ? "/" : std::string(resolved) + "/";
  canonical += name;
  struct stat info{};
  if (lstat(canonical.c_str(), &info) == 0 && S_ISLNK(info.st_mode)) {
    return std::string();
  }
  return canonical;
}

// Children before what they are mounted on; among equals the newest first.
// (Ids alone are no order: a tree that was moved is older than its parent.)
void SortForUnmount(std::vector<MountPoint>& mounts) {
  std::unordered_map<uint64_t, const MountPoint*> by_id;
  for (const MountPoint& mount : mounts) {
    by_id[mount.id] = &mount;
  }
  std::unordered_map<uint64_t, size_t> depths;
  for (const MountPoint& mount : mounts) {
    size_t depth = 0;
    for (auto at = by_id.find(mount.parent_id); at != by_id.end() && depth < mounts.size();
         at = by_id.find(at->second->parent_id)) {
      ++depth;
    }
    depths[mount.id] = depth;
  }
  std::ranges::reverse(mounts);
  std::ranges::stable_sort(mounts, std::ranges::greater(),
                           [&](const MountPoint& mount) { return depths[mount.id]; });
}

bool UnmountWhileBusy(const char* path) {
  Backoff backoff(kBusy);
  for (int i = 0; i < kBusyTries; ++i) {
    backoff.Sleep(Deadline::max());
    if (umount2(path, UMOUNT_NOFOLLOW) == 0 || errno != EBUSY) {
      return true;
    }
  }
  return false;
}

// Whether it is gone by our doing; by another's doing is fine too.
Result<bool> UnmountOne(const std::string& path, UnmountReport& report) {
  if (umount2(path.c_str(), UMOUNT_NOFOLLOW) == 0) {
    ++report.unmounted;
    return true;
  }
  if (errno == EBUSY) {
    if (!UnmountWhileBusy(path.c_str())) {
      if (umount2(path.c_str(), UMOUNT_NOFOLLOW | MNT_DETACH) != 0) {
        return FailErrno(errno, "unmount '{}'", path);
      }
      report.detached.push_back(path);
    }
    ++report.unmounted;
    return true;
  }
  if (errno == EINVAL || errno == ENOENT) {
    return false;
  }
  return FailErrno(errno, "unmount '{}'", path);
}

}  // namespace

Result<bool> IsMountPoint(const std::string& path) {
  GANTRY_TRY(const std::string top, Canonical(path));
  if (top.empty()) {
    return false;
  }
  GANTRY_TRY(const auto mounts, ListMounts(top));
  return std::ranges::contains(mounts, top, &MountPoint::path);
}

Result<UnmountReport> UnmountTree(const std::string& path) {
  GANTRY_TRY(const std::string top, Canonical(path));
  UnmountReport report;
  for (int round = 0; !top.empty() && round < kMaxRounds; ++round) {
    GANTRY_TRY(auto mounts, ListMounts(top));
    SortForUnmount(mounts);
    bool progress = false;
    for (const MountPoint& mount : mounts) {
      GANTRY_TRY(const bool gone, UnmountOne(mount.path, report));
      progress = progress || gone;
    }
    if (!progress) {
      break;
    }
  }
  return report;
}

Status ClearMountScratch(const std::string& scratch_dir) {
  constexpr size_t kMaxEntries = 1 << 16;
  if (!Exists(scratch_dir)) {
    return {};
  }
  GANTRY_TRY([[maybe_unused]] const UnmountReport report, UnmountTree(scratch_dir));
  GANTRY_TRY(const std::vector<std::string> names, ListDirectory(scratch_dir, kMaxEntries));
  Status cleared;
  for (const std::string& name : names) {
    const std::string path = Format("{}/{}", scratch_dir, name);
    // What is in it would be a layer's if it was a mount after all.
    if (rmdir(path.c_str()) != 0 && errno != ENOENT && cleared) {
      cleared = FailErrno(errno, "remove '{}', which an earlier engine has left", path);
    }
  }
  return cleared;
}

}  // namespace gantry::mount
