// SPDX-License-Identifier: Apache-2.0
//
// What tests ask of systemd.
#pragma once

#include <sys/types.h>

#include <string>

#include "tests/harness/program.h"

namespace gantry::node {

inline constexpr char kKeeperUnit[] = "gantry-keeper.service";
inline constexpr char kKeeperSocket[] = "gantry-keeper.socket";
inline constexpr char kEngineUnit[] = "gantry.service";
inline constexpr char kContainerdUnit[] = "containerd.service";

e2e::Output Systemctl(const std::vector<std::string>& words);
/// "active", "inactive", "failed", ...
std::string ActiveState(const std::string& unit);
/// As `systemctl show -P`, without the line's end.
std::string Property(const std::string& unit, const std::string& name);
/// 0 where none runs.
pid_t MainPid(const std::string& unit);

/// A process's cgroup below /sys/fs/cgroup: "/system.slice/a.service".
std::string CgroupOf(pid_t pid);

}  // namespace gantry::node
