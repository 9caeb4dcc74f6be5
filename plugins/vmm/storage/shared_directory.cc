// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/storage/shared_directory.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include <gantry/format.h>
#include <gantry/toolkit/mount/detached.h>
#include <gantry/toolkit/mount/id_map.h>
#include <gantry/toolkit/mount/unmount.h>

namespace gantry::vmm {
namespace {

/// Only places for mounts are in it, and those are empty.
constexpr const char* kPlaces = "nr_inodes=8192";
constexpr const char* kSize = "size=4k";

/// Whether something is mounted at `path`, which is no link.
Result<bool> IsMounted(const std::string& path) {
  struct statx info{};
  if (::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_TYPE, &info) !=
      0) {
    return errno == ENOENT ? Result<bool>(false) : FailErrno(errno, "look at '{}'", path);
  }
  if ((info.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) == 0) {
    return mount::IsMountPoint(path);  // Before Linux 5.8.
  }
  return (info.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

/// Not by `UnmountTree`, which waits for those that are in use for a moment: here a guest may use
/// them, and has been asked to let go.
Status Detach(const std::string& path) {
  if (::umount2(path.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) != 0 && errno != EINVAL &&
      errno != ENOENT) {
    return FailErrno(errno, "unmount '{}'", path);
  }
  return {};
}

Status MakePlace(int dir, const std::string& name, bool directory) {
  if (directory) {
    return ::mkdirat(dir, name.c_str(), 0755) == 0 || errno == EEXIST
               ? Status()
               : FailErrno(errno, "make the place '{}'", name);
  }
  const UniqueFd file(
      ::openat(dir, name.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644));
  return file ? Status() : FailErrno(errno, "make the place '{}'", name);
}

/// What is bound, complete, seen by nobody yet.
Result<UniqueFd> Prepare(const BindRequest& request) {
  GANTRY_TRY(UniqueFd tree, mount::CloneTreeOf(request.source, request.recursive));
  GANTRY_CHECK_OK(mount::SetPropagation(
      tree.get(),
      {{.type = request.follows ? unsigned{MS_SLAVE} : unsigned{MS_PRIVATE}, .recursive = true}}));
  mount::Attributes attributes{.set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, .clear = 0};
  if (request.read_only) {
    attributes.set |= MOUNT_ATTR_RDONLY;
  }
  GANTRY_CHECK_OK(mount::SetAttributes(tree.get(), attributes, true));
  if (!request.uid_mappings.empty()) {
    GANTRY_TRY(const UniqueFd space,
               mount::NewUserNamespace(request.uid_mappings, request.gid_mappings));
    GANTRY_CHECK_OK(mount::MapIds(tree.get(), space.get(), false));
  }
  return tree;
}

}  // namespace

Status SharedDirectory::Make() const {
  if (::mkdir(path_.c_str(), 0700) != 0 && errno != EEXIST) {
    return FailErrno(errno, "make '{}'", path_);
  }
  GANTRY_TRY(const bool mounted, IsMounted(path_));
  if (mounted) {
    return {};
  }
  GANTRY_TRY(const UniqueFd tree,
             mount::MountFileSystem(
                 {.type = "tmpfs", .source = "gantry", .options = {"mode=0755", kSize, kPlaces}},
                 MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV));
  GANTRY_CHECK_OK(mount::SetPropagation(tree.get(), {{.type = MS_PRIVATE, .recursive = false}}));
  GANTRY_CHECK_OK(mount::SetPropagation(tree.get(), {{.type = MS_SHARED, .recursive = false}}));
  return mount::AttachAt(tree.get(), path_);
}

Status SharedDirectory::Remove() const {
  GANTRY_CHECK_OK(Detach(path_));
  if (::rmdir(path_.c_str()) != 0 && errno != ENOENT) {
    return FailErrno(errno, "remove '{}'", path_);
  }
  return {};
}

Result<UniqueFd> SharedDirectory::Writable() const {
  GANTRY_TRY(UniqueFd tree, mount::CloneTree(AT_FDCWD, path_, false));
  GANTRY_CHECK_OK(mount::SetPropagation(tree.get(), {{.type = MS_PRIVATE, .recursive = false}}));
  GANTRY_CHECK_OK(mount::SetAttributes(tree.get(), {.set = 0, .clear = MOUNT_ATTR_RDONLY}, false));
  return tree;
}

Status SharedDirectory::Bind(const std::string& name, const BindRequest& request) const {
  GANTRY_TRY(const bool mounted, IsMounted(PlaceOf(name)));
  if (mounted) {
    return {};
  }
  GANTRY_TRY(const UniqueFd tree, Prepare(request));
  GANTRY_TRY(const UniqueFd writable, Writable());
  GANTRY_CHECK_OK(MakePlace(writable.get(), name, request.directory));
  return mount::AttachAt(tree.get(), PlaceOf(name));
}

Status SharedDirectory::Unbind(const std::string& name) const {
  GANTRY_CHECK_OK(Detach(PlaceOf(name)));
  auto writable = Writable();
  if (!writable) {
    // It is gone as a whole.
    return writable.error().sys_errno == ENOENT ? Status()
                                                : std::unexpected(std::move(writable).error());
  }
  if (::unlinkat(writable->get(), name.c_str(), AT_REMOVEDIR) != 0 && errno == ENOTDIR) {
    ::unlinkat(writable->get(), name.c_str(), 0);
  }
  return {};
}

}  // namespace gantry::vmm
