// SPDX-License-Identifier: Apache-2.0
//
// A mount is complete before it is attached: whoever sees it sees it with all its attributes. The
// place where it goes is looked up last, by the descriptor that it is attached to.
#include "core/toolkit/container/spec_mount.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include <gantry/format.h>
#include <gantry/toolkit/container/in_root.h>
#include <gantry/toolkit/mount/detached.h>
#include <gantry/toolkit/mount/id_map.h>

#include "core/toolkit/container/copy_up.h"

namespace gantry::container {
namespace {

bool IsCgroup(const oci::SpecMount& mount) {
  return mount.type == "cgroup" || mount.type == "cgroup2";
}

/// File systems of which the node has one, or a few, so that `ro` is for this mount alone.
bool IsShared(const std::string& type) {
  constexpr auto kTypes = std::to_array<std::string_view>({"proc", "sysfs", "mqueue", "devpts"});
  return std::ranges::contains(kTypes, type);
}

bool AtOrBelow(const std::string& path, std::string_view top) {
  return path.starts_with(top) && (path.size() == top.size() || path[top.size()] == '/');
}

/// Processes believe what they read there, and what writes there writes to the kernel.
bool IsKernels(const std::string& path, bool own_dev) {
  return AtOrBelow(path, "/proc") || AtOrBelow(path, "/sys") ||
         (own_dev ? AtOrBelow(path, "/dev") : path == "/dev");
}

Status MapMountIds(const PreparedMount& mount, const MountDefaults& defaults) {
  const bool own = !mount.mount.uid_mappings.empty() || !mount.mount.gid_mappings.empty();
  const auto& uids = own ? mount.mount.uid_mappings : defaults.uid_mappings;
  const auto& gids = own ? mount.mount.gid_mappings : defaults.gid_mappings;
  GANTRY_TRY(const UniqueFd space, mount::NewUserNamespace(uids, gids));
  return mount::MapIds(mount.tree.get(), space.get(), mount.words.id_mapped_tree);
}

Status PrepareBind(PreparedMount& mount, const MountDefaults& defaults) {
  if (mount.mount.source.empty()) {
    return Fail(Code::kInvalidArgument, "it has no source");
  }
  GANTRY_TRY(mount.tree,
             mount::CloneTree(defaults.bundle, mount.mount.source, mount.words.recursive));
  if (mount.words.id_mapped) {
    GANTRY_CHECK_OK(MapMountIds(mount, defaults));
  }
  GANTRY_CHECK_OK(mount::SetPropagation(mount.tree.get(), {defaults.propagation}));
  GANTRY_CHECK_OK(mount::SetPropagation(mount.tree.get(), mount.words.propagation));
  return SetAttributes(mount.tree.get(), mount.words);
}

Status Prepare(PreparedMount& mount, const MountDefaults& defaults) {
  GANTRY_TRY(mount.words, ReadMountWords(mount.mount));
  if (mount.words.remount) {
    return {};
  }
  if (mount.words.bind) {
    return PrepareBind(mount, defaults);
  }
  if (mount.mount.type.empty()) {
    return Fail(Code::kInvalidArgument, "it has no type and is no bind");
  }
  if (mount.words.id_mapped) {
    return Fail(Code::kUnimplemented, "ids are mapped of binds only");
  }
  if (IsCgroup(mount.mount)) {
    if (!mount.words.data.empty() || !mount.words.general.empty()) {
      return Fail(
          Code::kInvalidArgument, "option '{}': cgroups have none of their own",
          mount.words.data.empty() ? mount.words.general.front() : mount.words.data.front());
    }
    GANTRY_TRY(mount.cgroups, ViewOfOwnCgroups(mount.mount.type == "cgroup2", mount.words));
  }
  return {};
}

/// File systems that are the kernel's own word.
constexpr auto kKernelsMagic = std::to_array<decltype(statfs::f_type)>(
    {PROC_SUPER_MAGIC, SYSFS_MAGIC, CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, SECURITYFS_MAGIC,
     DEBUGFS_MAGIC, TRACEFS_MAGIC, BPF_FS_MAGIC});

/// By what statx(2) says, the same place of the same mount.
Result<bool> SamePlace(int one, int other) {
  constexpr unsigned kWanted = STATX_INO | STATX_MNT_ID;
  struct statx first{};
  struct statx second{};
  if (statx(one, "", AT_EMPTY_PATH, kWanted, &first) != 0 ||
      statx(other, "", AT_EMPTY_PATH, kWanted, &second) != 0) {
    return FailErrno(errno, "look at the place");
  }
  return first.stx_mnt_id == second.stx_mnt_id && first.stx_ino == second.stx_ino;
}

/// A link of the image's must not lead a mount into what is the kernel's: there it would stand for
/// something that processes trust, or that devices are made in.
Status RefuseKernelsFiles(int root, int target) {
  struct statfs info{};
  if (fstatfs(target, &info) != 0) {
    return FailErrno(errno, "look at the file system of the place");
  }
  if (std::ranges::contains(kKernelsMagic, info.f_type)) {
    return Fail(Code::kFailedPrecondition, "a link leads it into a file system of the kernel's, {}",
                info.f_type == PROC_SUPER_MAGIC ? "proc" : "sysfs or one of its kind");
  }
  for (const char* path : {"/proc", "/sys", "/dev"}) {
    const auto kernels = OpenInRoot(root, path, Links::kRefuse);
    if (!kernels) {
      continue;
    }
    GANTRY_TRY(const bool same, SamePlace(kernels->get(), target));
    if (same) {
      return Fail(Code::kFailedPrecondition, "a link leads it onto '{}'", path);
    }
  }
  return {};
}

/// The root itself is no place: what is mounted on it would be under it for whoever has its
/// descriptor.
Status RefuseRoot(int root, int target) {
  GANTRY_TRY(const bool same, SamePlace(root, target));
  if (same) {
    return Fail(Code::kFailedPrecondition, "its place is the root itself");
  }
  return {};
}

struct Place {
  UniqueFd target;
  /// It was there before.
  bool existed = false;
};

Result<Place> FindPlace(int root, const PreparedMount& mount, bool directory) {
  const std::string& path = mount.mount.destination;
  const Links links = mount.no_links ? Links::kRefuse : Links::kFollow;
  Place place;
  if (auto found = OpenInRoot(root, path, links)) {
    place.target = std::move(*found);
    place.existed = true;
  } else if (found.error().sys_errno != ENOENT || mount.words.remount) {
    return std::unexpected(std::move(found).error());
  } else if (directory) {
    GANTRY_TRY(place.target, MakeDirectoryInRoot(root, path, 0755, links));
  } else {
    GANTRY_TRY(place.target, MakeFileInRoot(root, path, 0755, links));
  }
  if (!mount.no_links) {
    GANTRY_CHECK_OK(RefuseKernelsFiles(root, place.target.get()));
  }
  GANTRY_CHECK_OK(RefuseRoot(root, place.target.get()));
  return place;
}

Result<bool> IsDirectory(int fd) {
  struct stat info{};
  if (fstat(fd, &info) != 0) {
    return FailErrno(errno, "look at it");
  }
  return S_ISDIR(info.st_mode);
}

/// What the file system is told; `ro` where it is this mount's alone and nothing is left to do.
mount::FileSystem FileSystemOf(const PreparedMount& mount, const std::string& label,
                               bool read_only) {
  mount::FileSystem made{mount.mount.type, mount.mount.source, mount.words.general};
  if (read_only && !IsShared(mount.mount.type)) {
    made.options.emplace_back("ro");
  }
  made.options.insert(made.options.end(), mount.words.data.begin(), mount.words.data.end());
  if (!label.empty() && mount.mount.type != "proc" && mount.mount.type != "sysfs") {
    made.options.push_back("context=" + label);
  }
  return made;
}

/// A tmpfs on a directory that was there looks as that did, but for what its options say.
Status TakeModeOf(const Place& place, mount::FileSystem& tmpfs) {
  const bool given = std::ranges::any_of(
      tmpfs.options, [](const std::string& option) { return option.starts_with("mode="); });
  if (!place.existed || given) {
    return {};
  }
  struct stat info{};
  if (fstat(place.target.get(), &info) != 0) {
    return FailErrno(errno, "look at the place");
  }
  tmpfs.options.push_back(Format("mode={:o}", info.st_mode & 07777U));
  return {};
}

Status MakeFileSystem(int root, const PreparedMount& mount, const MountDefaults& defaults,
                      std::vector<UniqueFd>& writable) {
  GANTRY_TRY(const Place place, FindPlace(root, mount, true));
  const bool tmpfs = mount.mount.type == "tmpfs";
  const bool later = mount.words.read_only() && tmpfs;
  mount::FileSystem made = FileSystemOf(mount, defaults.label, mount.words.read_only() && !later);
  if (tmpfs) {
    GANTRY_CHECK_OK(TakeModeOf(place, made));
  }
  uint64_t attributes = mount.words.tree.set | mount.words.top.set;
  if (later) {
    attributes &= ~uint64_t{MOUNT_ATTR_RDONLY};
  }
  GANTRY_TRY(UniqueFd created, mount::MountFileSystem(made, attributes));
  if (mount.words.copy_up) {
    GANTRY_CHECK_OK(CopyUp(place.target.get(), created.get()));
  }
  GANTRY_CHECK_OK(mount::SetPropagation(created.get(), mount.words.propagation));
  GANTRY_CHECK_OK(mount::Attach(created.get(), place.target.get()));
  if (later) {
    writable.push_back(std::move(created));
  }
  return {};
}

Status MakeCgroups(int root, const PreparedMount& mount) {
  GANTRY_TRY(const Place place, FindPlace(root, mount, true));
  if (mount.cgroups.whole) {
    return mount::Attach(mount.cgroups.binds.front().mount.get(), place.target.get());
  }
  return AttachCgroupFolders(mount.cgroups, mount.words, place.target.get());
}

Status RequireMount(int fd) {
  struct statx info{};
  if (statx(fd, "", AT_EMPTY_PATH, 0, &info) != 0) {
    return FailErrno(errno, "look at the place");
  }
  if ((info.stx_attributes & STATX_ATTR_MOUNT_ROOT) == 0) {
    return Fail(Code::kFailedPrecondition, "'remount', and it is not a mount yet");
  }
  return {};
}

Status MakeRemount(int root, const PreparedMount& mount) {
  GANTRY_TRY(const Place place, FindPlace(root, mount, true));
  GANTRY_CHECK_OK(RequireMount(place.target.get()));
  if (!mount.words.bind) {
    mount::FileSystem changes{"", "", mount.words.general};
    if (((mount.words.top.set | mount.words.top.clear) & MOUNT_ATTR_RDONLY) != 0) {
      changes.options.emplace_back(mount.words.read_only() ? "ro" : "rw");
    }
    changes.options.insert(changes.options.end(), mount.words.data.begin(), mount.words.data.end());
    GANTRY_CHECK_OK(mount::Reconfigure(place.target.get(), changes));
  }
  GANTRY_CHECK_OK(mount::SetPropagation(place.target.get(), mount.words.propagation));
  return SetAttributes(place.target.get(), mount.words);
}

Status Make(int root, const PreparedMount& mount, const MountDefaults& defaults,
            std::vector<UniqueFd>& writable) {
  if (mount.words.remount) {
    return MakeRemount(root, mount);
  }
  if (mount.words.bind) {
    GANTRY_TRY(const bool directory, IsDirectory(mount.tree.get()));
    GANTRY_TRY(const Place place, FindPlace(root, mount, directory));
    return mount::Attach(mount.tree.get(), place.target.get());
  }
  if (IsCgroup(mount.mount)) {
    return MakeCgroups(root, mount);
  }
  return MakeFileSystem(root, mount, defaults, writable);
}

std::string NameOf(const oci::SpecMount& mount) {
  return Format("mount '{}' (type '{}', source '{}')", mount.destination, mount.type, mount.source);
}

}  // namespace

std::string CleanPath(const std::string& path) {
  std::string clean;
  for (size_t at = 0; at <= path.size();) {
    const size_t slash = std::min(path.find('/', at), path.size());
    const std::string_view name = std::string_view(path).substr(at, slash - at);
    if (name == "..") {
      clean.resize(clean.empty() ? 0 : clean.rfind('/'));
    } else if (!name.empty() && name != ".") {
      clean.append("/").append(name);
    }
    at = slash + 1;
  }
  return clean.empty() ? "/" : clean;
}

Result<PreparedMount> PrepareMount(const oci::SpecMount& mount, const MountDefaults& defaults) {
  PreparedMount prepared;
  prepared.mount = mount;
  prepared.no_links = IsKernels(CleanPath(mount.destination), defaults.own_dev);
  if (Status done = Prepare(prepared, defaults); !done) {
    return std::unexpected(std::move(done).error().Within(NameOf(mount)));
  }
  return prepared;
}

Status MakeMount(int root, const PreparedMount& mount, const MountDefaults& defaults,
                 std::vector<UniqueFd>& writable) {
  if (Status made = Make(root, mount, defaults, writable); !made) {
    return std::unexpected(std::move(made).error().Within(NameOf(mount.mount)));
  }
  return {};
}

}  // namespace gantry::container
