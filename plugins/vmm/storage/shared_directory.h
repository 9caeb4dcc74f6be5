// SPDX-License-Identifier: Apache-2.0
//
// The directory that a guest sees, and the host's mounts in it.
//
// It is a file system of its own in memory, which holds nothing but the places for mounts, and the
// mount that virtiofsd is shown cannot be written: whatever a guest that was taken over writes
// outside its mounts is written nowhere. What is bound there has neither device files nor rights
// of setuid programs for the host, and is read-only on the host already where it is for all
// containers.
//
// Mounts that are made after virtiofsd has started come to its mount namespace since the directory
// is a shared mount. Source: mount_namespaces(7); measured: reference of the vmm backend,
// README.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/id_mapping.h>
#include <gantry/unique_fd.h>

namespace gantry::vmm {

struct BindRequest {
  /// What is bound: O_PATH. Borrowed.
  int source = -1;
  bool directory = false;
  /// With what is mounted below it.
  bool recursive = true;
  bool read_only = false;
  /// What the node mounts there later is seen, too.
  bool follows = false;
  /// Owners are seen through these, where there are any.
  std::vector<IdMapping> uid_mappings{};
  std::vector<IdMapping> gid_mappings{};
};

/// Thread: any, one at a time. Blocks: on mounts.
class SharedDirectory {
 public:
  explicit SharedDirectory(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }

  /// Again: nothing. Errors: the kernel's.
  Status Make() const;
  /// With all that is mounted in it, in use or not. Again: success.
  Status Remove() const;

  /// `name`: one without `/`. Again, where something is mounted there: success, as it is.
  Status Bind(const std::string& name, const BindRequest& request) const;
  /// In use or not: whoever has something open has it still. Again: success.
  Status Unbind(const std::string& name) const;

 private:
  /// The same file system, where it can be written.
  Result<UniqueFd> Writable() const;

  std::string PlaceOf(const std::string& name) const { return path_ + "/" + name; }

  std::string path_;
};

}  // namespace gantry::vmm
