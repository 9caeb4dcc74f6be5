// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/pod/cgroup_limits.h"

#include <array>

#include <gantry/toolkit/files/files.h>

namespace gantry::vmm {
namespace {

struct File {
  const char* name;
  const char* unlimited;
};

/// Of both versions; v1's memory with swap before its memory, which must not be above it.
/// Source: Linux, admin-guide/cgroup-v2.rst, admin-guide/cgroup-v1/memory.rst.
constexpr std::array<File, 6> kFiles = {{{"memory.high", "max"},
                                         {"memory.max", "max"},
                                         {"memory.swap.max", "max"},
                                         {"memory.memsw.limit_in_bytes", "-1"},
                                         {"memory.limit_in_bytes", "-1"},
                                         {"pids.max", "max"}}};

}  // namespace

Status LiftContainerLimits(const std::vector<std::string>& dirs) {
  for (const std::string& dir : dirs) {
    for (const File& file : kFiles) {
      const std::string path = dir + "/" + file.name;
      const Status written = WriteExisting(path, file.unlimited);
      if (!written && written.error().code != Code::kNotFound) {
        return written;
      }
    }
  }
  return {};
}

}  // namespace gantry::vmm
