// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <gantry/error.h>

namespace gantry {

/// Which file it is: a replaced one differs, and one that was written since. Thread: any; plain
/// data.
struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t size = 0;
  /// Since the epoch.
  int64_t changed_ns = 0;

  /// Of the file that a path leads to, over links. Errors: of stat(2); kNotFound. Blocks: on files.
  static Result<FileIdentity> Of(const std::string& path);

  bool operator==(const FileIdentity&) const = default;
};

}  // namespace gantry
