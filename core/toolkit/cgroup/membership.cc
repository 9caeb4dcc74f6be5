// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <ranges>

#include <gantry/toolkit/cgroup/membership.h>

namespace gantry::cgroup {
namespace {

std::vector<std::string> SplitAtCommas(std::string_view text) {
  std::vector<std::string> parts;
  for (const auto part : std::views::split(text, ',')) {
    parts.emplace_back(std::string_view(part));
  }
  return parts;
}

// The kernel's mark of a cgroup that was removed while a process that has ended was in it.
constexpr std::string_view kDeleted = " (deleted)";

/// A mount of v1 has its controllers among the options of its file system.
bool Shows(const mount::MountPoint& mount, const Membership& membership) {
  if (membership.unified() || mount.type != "cgroup") {
    return membership.unified() && mount.type == "cgroup2";
  }
  const std::vector<std::string> options = SplitAtCommas(mount.super_options);
  return std::ranges::all_of(membership.controllers, [&](const std::string& name) {
    return std::ranges::contains(options, name);
  });
}

}  // namespace

std::vector<Membership> ParseMemberships(std::string_view text) {
  std::vector<Membership> memberships;
  for (const auto part : std::views::split(text, '\n')) {
    const std::string_view line(part);
    const size_t first = line.find(':');
    const size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) {
      continue;
    }
    const std::string_view names = line.substr(first + 1, second - first - 1);
    std::string_view path = line.substr(second + 1);
    path.remove_suffix(path.ends_with(kDeleted) ? kDeleted.size() : 0);
    memberships.push_back(
        {names.empty() ? std::vector<std::string>() : SplitAtCommas(names), std::string(path)});
  }
  return memberships;
}

std::optional<std::string> PathBelow(std::string_view root, std::string_view path) {
  if (!path.starts_with('/') || path.starts_with("/..")) {
    return std::nullopt;
  }
  if (root == "/") {
    return std::string(path);
  }
  if (!path.starts_with(root) || (path.size() > root.size() && path[root.size()] != '/')) {
    return std::nullopt;
  }
  return path.size() == root.size() ? "/" : std::string(path.substr(root.size()));
}

std::optional<MountedCgroup> FindMounted(const Membership& membership,
                                         const std::vector<mount::MountPoint>& mounts) {
  for (const mount::MountPoint& mount : mounts) {
    auto below = Shows(mount, membership) ? PathBelow(mount.root, membership.path) : std::nullopt;
    if (below) {
      return MountedCgroup{mount.path, std::move(*below)};
    }
  }
  return std::nullopt;
}

}  // namespace gantry::cgroup
