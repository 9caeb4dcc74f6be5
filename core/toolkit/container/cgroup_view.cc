// SPDX-License-Identifier: Apache-2.0
#include "core/toolkit/container/cgroup_view.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <ranges>
#include <string_view>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/mount/detached.h>

namespace gantry::container {
namespace {

constexpr size_t kMaxMountInfo = 16U << 20U;
constexpr size_t kMaxCgroupFile = 1U << 20U;

std::vector<std::string> Split(std::string_view text, char sign) {
  std::vector<std::string> parts;
  for (const auto part : std::views::split(text, sign)) {
    parts.emplace_back(std::string_view(part));
  }
  return parts;
}

/// Source: proc_pid_mountinfo(5): space, tab, newline and backslash are octal.
std::string Unescaped(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](size_t at) { return at < text.size() ? text[at] - '0' : -1; };
    if (text[i] == '\\' && digit(i + 1) >= 0 && digit(i + 2) >= 0 && digit(i + 3) >= 0) {
      plain += static_cast<char>(digit(i + 1) * 64 + digit(i + 2) * 8 + digit(i + 3));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

struct CgroupMount {
  bool unified = false;
  std::string root;
  std::string place;
  /// Of version 1: what tells hierarchies apart.
  std::vector<std::string> options;
};

std::optional<CgroupMount> ParseMountLine(const std::string& line) {
  const size_t dash = line.find(" - ");
  if (dash == std::string::npos) {
    return std::nullopt;
  }
  const std::vector<std::string> before = Split(std::string_view(line).substr(0, dash), ' ');
  const std::vector<std::string> after = Split(std::string_view(line).substr(dash + 3), ' ');
  if (before.size() < 6 || after.size() < 3 || !after[0].starts_with("cgroup")) {
    return std::nullopt;
  }
  return CgroupMount{after[0] == "cgroup2", Unescaped(before[3]), Unescaped(before[4]),
                     Split(after[2], ',')};
}

/// One line of /proc/self/cgroup. Source: cgroups(7).
struct OwnCgroup {
  bool unified = false;
  std::vector<std::string> controllers;
  std::string path;
};

std::optional<OwnCgroup> ParseCgroupLine(std::string_view line) {
  const size_t first = line.find(':');
  const size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
  if (second == line.npos) {
    return std::nullopt;
  }
  const std::string_view names = line.substr(first + 1, second - first - 1);
  OwnCgroup own{names.empty(), Split(names, ','), std::string(line.substr(second + 1))};
  return own;
}

/// What of `path` is below `root`; nothing where it is not.
std::optional<std::string> Below(const std::string& root, const std::string& path) {
  if (root == "/") {
    return path == "/" ? "" : path;
  }
  if (!path.starts_with(root) || (path.size() > root.size() && path[root.size()] != '/')) {
    return std::nullopt;
  }
  return path.substr(root.size());
}

bool Shows(const CgroupMount& mount, const OwnCgroup& own) {
  if (mount.unified || own.unified) {
    return mount.unified && own.unified;
  }
  return std::ranges::all_of(own.controllers, [&](const std::string& name) {
    return std::ranges::contains(mount.options, name);
  });
}

/// Nothing where no mount shows it.
Result<std::optional<CgroupBind>> BindOf(const OwnCgroup& own,
                                         const std::vector<CgroupMount>& mounts,
                                         const MountWords& words) {
  for (const CgroupMount& mount : mounts) {
    const std::optional<std::string> below = Below(mount.root, own.path);
    if (!Shows(mount, own) || !below) {
      continue;
    }
    CgroupBind bind;
    bind.name = mount.place.substr(mount.place.rfind('/') + 1);
    GANTRY_TRY(bind.mount, mount::CloneTree(AT_FDCWD, mount.place + *below, false));
    GANTRY_CHECK_OK(SetAttributes(bind.mount.get(), words));
    return bind;
  }
  return std::nullopt;
}

Result<std::vector<CgroupMount>> CgroupMounts() {
  GANTRY_TRY(const std::string text, ReadFile("/proc/self/mountinfo", kMaxMountInfo));
  std::vector<CgroupMount> mounts;
  for (const std::string& line : Split(text, '\n')) {
    if (auto mount = ParseMountLine(line)) {
      mounts.push_back(std::move(*mount));
    }
  }
  return mounts;
}

}  // namespace

Result<CgroupView> ViewOfOwnCgroups(bool unified, const MountWords& words) {
  GANTRY_TRY(const std::vector<CgroupMount> mounts, CgroupMounts());
  GANTRY_TRY(const std::string text, ReadFile("/proc/self/cgroup", kMaxCgroupFile));
  CgroupView view;
  CgroupView version_2;
  version_2.whole = true;
  for (const std::string& line : Split(text, '\n')) {
    const std::optional<OwnCgroup> own = ParseCgroupLine(line);
    if (!own) {
      continue;
    }
    GANTRY_TRY(auto bind, BindOf(*own, mounts, words));
    if (bind) {
      (own->unified ? version_2 : view).binds.push_back(std::move(*bind));
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
