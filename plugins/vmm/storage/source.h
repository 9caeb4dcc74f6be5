// SPDX-License-Identifier: Apache-2.0
//
// What a mount of config.json is to show: looked at before anything is decided, by a descriptor
// that is what is mounted afterwards.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include <gantry/error.h>
#include <gantry/toolkit/oci/spec.h>
#include <gantry/unique_fd.h>

namespace gantry::vmm {

enum class SourceKind { kDirectory, kFile, kBlockDevice, kCharDevice, kSocket, kFifo };

struct Source {
  /// O_PATH.
  UniqueFd fd;
  SourceKind kind = SourceKind::kFile;
  /// Its path, with links followed.
  std::string path{};
  /// The same for the same place of the same mount, until that is unmounted.
  std::string identity{};
  /// Of its file system: statfs(2), `f_type`; its size and that of a block; of hugetlbfs a block
  /// is a page.
  int64_t file_system = 0;
  uint64_t file_system_bytes = 0;
  uint64_t block_bytes = 0;
  /// Of a directory.
  mode_t mode = 0;
  uid_t uid = 0;
  gid_t gid = 0;
};

/// Links are followed: what the path leads to counts, once. Errors: kInvalidArgument: nothing is
/// there, or it is no absolute path; the errno's. Blocks: as the file system does.
Result<Source> LookAt(const std::string& path);

/// A word in errors: "a socket".
std::string_view KindName(SourceKind kind);

}  // namespace gantry::vmm
