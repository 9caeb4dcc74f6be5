// SPDX-License-Identifier: Apache-2.0
#include "core/toolkit/container/cgroup_view.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <ranges>
#include <string_view>

#include <gantry/format.h>
#include <gantry/toolkit/cgroup/membership.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/mount/detached.h>
#include <gantry/toolkit/mount/mount_info.h>

namespace gantry::container {
namespace {

constexpr size_t kMaxCgroupFile = 1U << 20U;

std::vector<std::string> Split(std::string_view text, char sign) {
  std::vector<std::string> parts;
  for (const auto part : std::views::split(text, sign)) {
    parts.emplace_back(std::string_view(part));
  }
  return parts;
}

/// Nothing where no mount shows it.
Result<std::optional<CgroupBind>> BindOf(const cgroup::Membership& own,
                                         const std::vector<mount::MountPoint>& mounts,
                                         const MountWords& words) {
  const auto found = cgroup::FindMounted(own, mounts);
  if (!found) {
    return std::nullopt;
  }
  CgroupBind bind;
  bind.name = found->mount_dir.substr(found->mount_dir.rfind('/') + 1);
  GANTRY_TRY(bind.mount, mount::CloneTree(AT_FDCWD, found->dir(), false));
  GANTRY_CHECK_OK(SetAttributes(bind.mount.get(), words));
  return bind;
}

}  // namespace

Result<CgroupView> ViewOfOwnCgroups(bool unified, const MountWords& words) {
  GANTRY_TRY(const auto mounts, mount::ListMounts("/"));
  GANTRY_TRY(const std::string text, ReadFile("/proc/self/cgroup", kMaxCgroupFile));
  CgroupView view;
  CgroupView version_2;
  version_2.whole = true;
  for (const cgroup::Membership& own : cgroup::ParseMemberships(text)) {
    GANTRY_TRY(auto bind, BindOf(own, mounts, words));
    if (bind) {
      (own.unified() ? version_2 : view).binds.push_back(std::move(*bind));
    }
  }
  if (unified || view.binds.empty()) {
    view = std::move(version_2);
  }
  if (view.binds.empty()) {
    return Fail(Code::kFailedPrecondition,
                "cgroups: no mount of this mount namespace shows those of this process");
  }
  return view;
}

Status AttachCgroupFolders(const CgroupView& view, const MountWords& words, int target) {
  const uint64_t later = words.top.set & MOUNT_ATTR_RDONLY;
  GANTRY_TRY(const UniqueFd folders,
             mount::MountFileSystem({"tmpfs", "cgroup", {"mode=755"}}, words.top.set & ~later));
  GANTRY_CHECK_OK(mount::Attach(folders.get(), target));
  for (const auto& [name, mount] : view.binds) {
    if (mkdirat(folders.get(), name.c_str(), 0755) != 0) {
      return FailErrno(errno, "make the folder of cgroups '{}'", name);
    }
    const UniqueFd folder(openat(folders.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!folder) {
      return FailErrno(errno, "open the folder of cgroups '{}'", name);
    }
    GANTRY_CHECK_OK(mount::Attach(mount.get(), folder.get()));
    for (const std::string& controller : Split(name, ',')) {
      if (controller != name && symlinkat(name.c_str(), folders.get(), controller.c_str()) != 0) {
        return FailErrno(errno, "make the link of cgroups '{}'", controller);
      }
    }
  }
  return mount::SetAttributes(folders.get(), mount::Attributes{later, 0}, false);
}

}  // namespace gantry::container
