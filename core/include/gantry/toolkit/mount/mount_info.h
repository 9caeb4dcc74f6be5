// SPDX-License-Identifier: Apache-2.0
//
// What is mounted, as the kernel tells it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>

namespace gantry::mount {

/// One line of mountinfo. Source: proc_pid_mountinfo(5).
struct MountPoint {
  uint64_t id = 0;
  uint64_t parent_id = 0;
  /// What of the file system is mounted, `/` for all of it.
  std::string root;
  std::string path;
  std::string type;
  std::string source;
  std::string options;
  std::string super_options;
};

/// Reads the text of a mountinfo file; lines that are malformed are left out.
std::vector<MountPoint> ParseMountInfo(std::string_view text);

/// The mounts at or below the absolute path `below` in this process's mount
/// namespace, oldest first. `below` is compared as text: it must be canonical.
/// Blocks: never for long (reads /proc only).
Result<std::vector<MountPoint>> ListMounts(std::string_view below);

}  // namespace gantry::mount
