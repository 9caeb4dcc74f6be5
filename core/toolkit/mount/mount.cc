// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <ranges>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/mount/detached.h>
#include <gantry/toolkit/mount/id_map.h>
#include <gantry/toolkit/mount/loop_device.h>
#include <gantry/toolkit/mount/mount.h>
#include <gantry/toolkit/mount/options.h>
#include <gantry/toolkit/mount/overlay.h>

namespace gantry::mount {
namespace {

// Flags that belong to the mount point and not to the file system; a bind mount
// takes them with a remount only.
constexpr unsigned long kPointFlags = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME |
                                      MS_NODIRATIME | MS_RELATIME | MS_STRICTATIME | MS_NOSYMFOLLOW;
// Room that the kernel's own words need beside the options; as upstream has it.
constexpr size_t kOverlayReserve = 512;

size_t PageSize() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

// What is at `path` now, by a name that is good as long as the descriptor is. Each call opens it
// anew, since the next one is about what has been mounted there meanwhile.
std::string NameOf(const UniqueFd& opened) { return Format("/proc/self/fd/{}", opened.get()); }

// What has been done, so that it can be undone: everything, unless kept.
class Undo {
 public:
  Undo() = default;
  Undo(const Undo&) = delete;
  Undo& operator=(const Undo&) = delete;

  ~Undo() {
    for (const std::string& path : mounted_ | std::views::reverse) {
      if (const auto top = OpenWithoutLinks(path)) {
        umount2(NameOf(*top).c_str(), MNT_DETACH);
      }
    }
    for (const std::string& dir : dirs_) {
      rmdir(dir.c_str());
    }
  }

  void Mounted(std::string path) { mounted_.push_back(std::move(path)); }

  void MadeDir(std::string path) { dirs_.push_back(std::move(path)); }

  void Keep() { mounted_.clear(); }

 private:
  std::vector<std::string> mounted_;
  std::vector<std::string> dirs_;
};

// Where the mount goes: an absolute path without symlinks. It is to be opened as such, too: who
// changes the tree meanwhile must not lead out of it.
Result<std::string> ResolveTarget(const std::string& rootfs_dir, const std::string& target) {
  const UniqueFd root(open(rootfs_dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root) {
    return FailErrno(errno, "open rootfs '{}'", rootfs_dir);
  }
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  const char* name = target.empty() ? "." : target.c_str();
  const UniqueFd found(static_cast<int>(syscall(SYS_openat2, root.get(), name, &how, sizeof(how))));
  if (!found) {
    return FailErrno(errno, "find target '{}' in '{}'", target, rootfs_dir);
  }
  return ReadLink(NameOf(found));
}

Status Call(const std::string& source, const std::string& target, const char* type,
            unsigned long flags, const std::string& data) {
  GANTRY_TRY(const UniqueFd top, OpenWithoutLinks(target));
  if (::mount(source.c_str(), NameOf(top).c_str(), type, flags, data.c_str()) != 0) {
    return FailErrno(errno, "mount on '{}'", target);
  }
  return {};
}

// One mount being made. The steps are those of mount(8): the mount itself, a
// remount where a bind mount has flags, the id mapping, the propagation.
class Mounter {
 public:
  Mounter(const Mount& mount, MountOptions options, std::string target,
          const std::string& scratch_dir)
      : mount_(mount),
        scratch_dir_(scratch_dir),
        options_(std::move(options)),
        target_(std::move(target)),
        source_(mount.source) {}

  Status Run(Undo& undo) {
    if (options_.loop) {
      GANTRY_TRY(loop_, AttachLoopDevice(mount_.source, (options_.flags & MS_RDONLY) != 0,
                                         options_.direct_io));
      source_ = loop_.path;
    }
    if (overlay() && options_.idmapped()) {
      GANTRY_CHECK_OK(MapLowerDirs());
    }
    GANTRY_CHECK_OK(First());
    if ((options_.flags & MS_REMOUNT) == 0) {
      undo.Mounted(target_);
    }
    const bool bind = (options_.flags & MS_BIND) != 0;
    if (bind && (options_.flags & kPointFlags) != 0) {
      GANTRY_CHECK_OK(
          Call("", target_, nullptr, MS_REMOUNT | MS_BIND | (options_.flags & kPointFlags), ""));
    }
    if (!overlay() && options_.idmapped()) {
      GANTRY_CHECK_OK(MapIds());
    }
    if (options_.propagation != 0) {
      GANTRY_CHECK_OK(Call("", target_, nullptr, options_.propagation, ""));
    }
    return {};
  }

 private:
  bool overlay() const { return mount_.type == "overlay"; }

  Status First() {
    const std::string data = options_.JoinedData();
    if (overlay() && data.size() > PageSize() - kOverlayReserve) {
      GANTRY_TRY(const UniqueFd below, OpenWithoutLinks(target_));
      return MountLongOverlay(source_, NameOf(below), options_);
    }
    if (data.size() >= PageSize()) {
      return Fail(Code::kInvalidArgument, "mount options are too long: {} bytes", data.size());
    }
    return Call(source_, target_, mount_.type.c_str(), options_.flags, data);
  }

  // A mount can be mapped before it is attached only: a mapped copy takes the
  // place of the plain one.
  Status MapIds() {
    GANTRY_TRY(const UniqueFd space, NewUserNamespace(options_.uids, options_.gids));
    const bool recursive = (options_.flags & MS_REC) != 0;
    GANTRY_TRY(const UniqueFd plain, OpenWithoutLinks(target_));
    GANTRY_TRY(const UniqueFd mapped, CloneTreeOf(plain.get(), recursive));
    GANTRY_CHECK_OK(mount::MapIds(mapped.get(), space.get(), recursive));
    if (umount2(NameOf(plain).c_str(), MNT_DETACH) != 0) {
      return FailErrno(errno, "unmount '{}'", target_);
    }
    GANTRY_TRY(const UniqueFd below, OpenWithoutLinks(target_));
    return Attach(mapped.get(), below.get());
  }

  // An overlay is mapped by its lower layers. Each is seen through a mapped bind
  // mount, which nobody needs by name once the overlay is up.
  Status MapLowerDirs() {
    GANTRY_TRY(const UniqueFd space, NewUserNamespace(options_.uids, options_.gids));
    for (std::string& word : options_.data) {
      if (!word.starts_with("lowerdir=")) {
        continue;
      }
      std::string mapped = "lowerdir=";
      for (const auto& [dir, data_only] : SplitLowerDirs(word.substr(9))) {
        GANTRY_TRY(const std::string alias, MapLowerDir(dir, space.get()));
        mapped += (mapped.ends_with('=') ? "" : data_only ? "::" : ":") + EscapeLowerDir(alias);
      }
      word = std::move(mapped);
    }
    return {};
  }

  Result<std::string> MapLowerDir(const std::string& dir, int space) {
    if (mkdir(scratch_dir_.c_str(), 0700) != 0 && errno != EEXIST) {
      return FailErrno(errno, "make directory '{}'", scratch_dir_);
    }
    std::string alias = scratch_dir_ + "/XXXXXX";
    if (mkdtemp(alias.data()) == nullptr) {
      return FailErrno(errno, "make directory '{}'", alias);
    }
    lower_.MadeDir(alias);
    GANTRY_TRY(const UniqueFd mapped, CloneTree(AT_FDCWD, dir, false));
    if (Status done = mount::MapIds(mapped.get(), space, false); !done) {
      return std::unexpected(std::move(done).error().Within(Format("layer '{}'", dir)));
    }
    GANTRY_CHECK_OK(AttachAt(mapped.get(), alias));
    lower_.Mounted(alias);
    return alias;
  }

  const Mount& mount_;
  const std::string& scratch_dir_;
  MountOptions options_;
  std::string target_;
  std::string source_;
  LoopDevice loop_;
  Undo lower_;
};

Status MountOne(const std::string& rootfs_dir, const Mount& mount, const std::string& scratch_dir,
                Undo& undo) {
  if (mount.type.starts_with("fuse.") || mount.type.starts_with("fuse3.")) {
    return Fail(Code::kUnimplemented, "type '{}': mounts of user space programs are not supported",
                mount.type);
  }
  if (mount.type.contains('/')) {
    return Fail(Code::kInvalidArgument,
                "type '{}': meant for containerd's mount manager, which did not take it",
                mount.type);
  }
  GANTRY_TRY(MountOptions options, ParseMountOptions(mount.options));
  if (mount.type == "bind" && (options.flags & MS_BIND) == 0) {
    options.flags |= MS_BIND;
  }
  GANTRY_TRY(std::string target, ResolveTarget(rootfs_dir, mount.target));
  return Mounter(mount, std::move(options), std::move(target), scratch_dir).Run(undo);
}

}  // namespace

Status MountAll(const std::string& rootfs_dir, const std::vector<Mount>& mounts,
                const std::string& scratch_dir) {
  if (mkdir(rootfs_dir.c_str(), 0711) != 0 && errno != EEXIST) {
    return FailErrno(errno, "make rootfs '{}'", rootfs_dir);
  }
  Undo undo;
  for (size_t i = 0; i < mounts.size(); ++i) {
    if (Status done = MountOne(rootfs_dir, mounts[i], scratch_dir, undo); !done) {
      return std::unexpected(std::move(done).error().Within(
          Format("mount rootfs component {} (type '{}', source '{}')", i, mounts[i].type,
                 mounts[i].source)));
    }
  }
  undo.Keep();
  return {};
}

}  // namespace gantry::mount
