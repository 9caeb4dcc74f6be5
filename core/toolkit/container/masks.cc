// SPDX-License-Identifier: Apache-2.0
#include "core/toolkit/container/masks.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <optional>

#include <gantry/format.h>
#include <gantry/toolkit/container/in_root.h>
#include <gantry/toolkit/mount/detached.h>
#include <gantry/unique_fd.h>

namespace gantry::container {
namespace {

/// Its file is the node's perhaps: neither its owner nor its mode can be changed by it.
constexpr uint64_t kMaskAttributes = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;

/// None where nothing is at `path`.
Result<std::optional<UniqueFd>> OpenIfThere(int root, const std::string& path) {
  Result<UniqueFd> found = OpenInRoot(root, path);
  if (found) {
    return std::optional(std::move(*found));
  }
  if (found.error().sys_errno == ENOENT || found.error().sys_errno == ENOTDIR) {
    return std::nullopt;
  }
  return std::unexpected(std::move(found).error());
}

/// It is an image's file perhaps: then it says what it is by its number alone.
Result<UniqueFd> NullDevice(int root) {
  GANTRY_TRY(const UniqueFd device, OpenInRoot(root, "/dev/null", Links::kRefuse));
  struct stat info{};
  if (fstat(device.get(), &info) != 0) {
    return FailErrno(errno, "look at '/dev/null' in the root");
  }
  if (!S_ISCHR(info.st_mode) || info.st_rdev != makedev(1, 3)) {
    return Fail(Code::kFailedPrecondition, "'/dev/null' in the root is not the device c 1:3");
  }
  GANTRY_TRY(UniqueFd tree, mount::CloneTreeOf(device.get(), false));
  GANTRY_CHECK_OK(mount::SetAttributes(tree.get(), mount::Attributes{kMaskAttributes, 0}, false));
  return tree;
}

Result<UniqueFd> EmptyDirectory(const std::string& label) {
  mount::FileSystem empty{"tmpfs", "tmpfs", {"ro", "size=4k", "nr_inodes=1"}};
  if (!label.empty()) {
    empty.options.push_back("context=" + label);
  }
  return mount::MountFileSystem(empty, kMaskAttributes | MOUNT_ATTR_NODEV);
}

Status MakeOneReadOnly(int root, const std::string& path) {
  GANTRY_TRY(const auto found, OpenIfThere(root, path));
  if (!found) {
    return {};
  }
  GANTRY_TRY(const UniqueFd tree, mount::CloneTreeOf(found->get(), true));
  GANTRY_CHECK_OK(mount::SetAttributes(tree.get(), mount::Attributes{MOUNT_ATTR_RDONLY, 0}, false));
  return mount::Attach(tree.get(), found->get());
}

Status MaskOne(int root, const std::string& path, const std::string& label) {
  GANTRY_TRY(const auto found, OpenIfThere(root, path));
  if (!found) {
    return {};
  }
  struct stat info{};
  if (fstat(found->get(), &info) != 0) {
    return FailErrno(errno, "look at it");
  }
  GANTRY_TRY(const UniqueFd mask, S_ISDIR(info.st_mode) ? EmptyDirectory(label) : NullDevice(root));
  return mount::Attach(mask.get(), found->get());
}

}  // namespace

Status MakeReadOnly(int root, const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (Status made = MakeOneReadOnly(root, path); !made) {
      return std::unexpected(std::move(made).error().Within(Format("make '{}' read-only", path)));
    }
  }
  return {};
}

Status MaskPaths(int root, const std::vector<std::string>& paths, const std::string& label) {
  for (const std::string& path : paths) {
    if (Status made = MaskOne(root, path, label); !made) {
      return std::unexpected(std::move(made).error().Within(Format("mask '{}'", path)));
    }
  }
  return {};
}

}  // namespace gantry::container
