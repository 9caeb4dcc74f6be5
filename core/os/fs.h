// SPDX-License-Identifier: Apache-2.0
//
// Directories and what stands for files. Reading, writing and removing them is in
// `gantry/toolkit/files/files.h`; mounts are in `mount.h`.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::os {

/// Makes the directory and those above it that do not exist, with `mode` (less
/// the umask). Again: harmless. Errors: FAILED_PRECONDITION where something
/// that is no directory is in the way.
Status MakeDirs(const std::string& path, mode_t mode);

/// For use in `*at` calls.
Result<UniqueFd> OpenDirectory(const std::string& path);

/// `mode` is exact. Errors: ALREADY_EXISTS.
Status MakeFifo(const std::string& path, mode_t mode);

/// Raises the soft limit of open files to the hard one and gives it.
Result<uint64_t> RaiseOpenFileLimit();

/// A directory that is removed with this object. Thread: any, one at a time.
class TempDir {
 public:
  /// Makes `<prefix><random>`, mode 0700.
  static Result<TempDir> Create(const std::string& prefix = "/tmp/gantry-");

  TempDir() = default;
  TempDir(TempDir&& other) noexcept;
  TempDir& operator=(TempDir&& other) noexcept;
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir();

  const std::string& path() const { return path_; }

 private:
  explicit TempDir(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

}  // namespace gantry::os
