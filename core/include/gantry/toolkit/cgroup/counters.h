// SPDX-License-Identifier: Apache-2.0
//
// Numbers of the kernel's in a cgroup's files, one by one, and what it counts for all that is
// in a sandbox's cgroups, on v1 or v2, by their directories. Source: Linux,
// admin-guide/cgroup-v1/{cpuacct,memory}.rst, admin-guide/cgroup-v2.rst.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::cgroup {

/// One directory for each v1 controller, or the one of v2; none: it is in no cgroup.
using CgroupDirs = std::vector<std::string>;

/// A number with a line's end at most. None: something else, as "max".
std::optional<uint64_t> NumberAlone(std::string_view text);
/// The same in a file. None also: no file.
std::optional<uint64_t> ReadNumber(const std::string& path);
/// The number behind `name` in a text of lines `NAME NUMBER`.
std::optional<uint64_t> FieldIn(std::string_view text, std::string_view name);
/// The same in a file.
std::optional<uint64_t> ReadField(const std::string& path, std::string_view name);

/// CPU time used so far. None: it is not counted.
/// Blocks: on files, as all here. Thread: any.
std::optional<uint64_t> CpuTimeNs(const CgroupDirs& dirs);
/// The lowest limit of these cgroups and those above; the largest number: there is none.
uint64_t MemoryLimitBytes(const CgroupDirs& dirs);
/// How often the kernel has killed a process in the cgroup `dir`, or below, for want of memory.
/// None: the memory controller has no files there.
std::optional<uint64_t> OomKillsIn(const std::string& dir);
/// The same of that of `dirs` which has the memory controller; 0: none has.
uint64_t OomKills(const CgroupDirs& dirs);

/// The directory itself and those above that are cgroups.
std::vector<std::string> UpToRoot(std::string dir);

}  // namespace gantry::cgroup
