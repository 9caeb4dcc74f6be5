// SPDX-License-Identifier: Apache-2.0
//
// Which cgroups a process is in, and where they are mounted. Source: cgroups(7).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/toolkit/mount/mount_info.h>

namespace gantry::cgroup {

/// One line of /proc/PID/cgroup: the cgroup of one hierarchy.
struct Membership {
  /// Of a hierarchy of v1: `cpu`, `cpuacct`, or a name alone, `name=systemd`. None: it is v2's.
  std::vector<std::string> controllers;
  /// From the root of the hierarchy, or of the reader's cgroup namespace; begins with `/`. Of a
  /// cgroup that is gone it is the name that it had.
  std::string path;

  bool unified() const { return controllers.empty(); }

  bool operator==(const Membership&) const = default;
};

/// The text of /proc/PID/cgroup; lines that are malformed are left out. Thread: any.
std::vector<Membership> ParseMemberships(std::string_view text);

/// `path` as it is seen where the cgroup `root` of its hierarchy is mounted: begins with `/`.
/// Nothing: it is not below `root`, or outside of the reader's cgroup namespace (`/../a`).
std::optional<std::string> PathBelow(std::string_view root, std::string_view path);

/// A cgroup where it is mounted.
struct MountedCgroup {
  std::string mount_dir;
  /// Below `mount_dir`, begins with `/`; `/` alone for what is mounted there itself.
  std::string path;

  /// Absolute name of the directory.
  std::string dir() const { return path == "/" ? mount_dir : mount_dir + path; }

  bool is_root() const { return path == "/"; }

  bool operator==(const MountedCgroup&) const = default;
};

/// The first of `mounts` that shows it. Nothing: none does.
std::optional<MountedCgroup> FindMounted(const Membership& membership,
                                         const std::vector<mount::MountPoint>& mounts);

}  // namespace gantry::cgroup
