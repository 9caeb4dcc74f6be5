// SPDX-License-Identifier: Apache-2.0
//
// Files and directories. Mounts are in `mount.h`.
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

/// The whole file, of /proc and cgroupfs too. Never waits for a fifo's other end.
/// Errors: INVALID_ARGUMENT where it is longer than `max_bytes`; the errno's.
Result<std::string> ReadFile(const std::string& path, size_t max_bytes);
/// The same below the directory `dir`; a symbolic link at the end is refused.
Result<std::string> ReadFileAt(int dir, const std::string& name, size_t max_bytes);

/// Writes `data` with one write(2) into a file that exists, as cgroupfs and
/// /proc want it.
Status WriteFile(const std::string& path, std::string_view data);
Status WriteFileAt(int dir, const std::string& name, std::string_view data);

/// Makes `path` hold `data`: readers see the old file or the new one, whole.
/// `mode` is exact, whatever the umask. Not synced: what it is for does not outlive a power
/// cut either. Owner: the directory must not be writable for strangers.
Status WriteFileAtomic(const std::string& path, std::string_view data, mode_t mode);

/// Makes the directory and those above it that do not exist, with `mode` (less
/// the umask). Again: harmless. Errors: FAILED_PRECONDITION where something
/// that is no directory is in the way.
Status MakeDirs(const std::string& path, mode_t mode);

/// Removes a file or a directory with all below it; follows no symbolic link
/// (`path`'s own parents excepted) and enters no mount. Again: what is gone is
/// success. Errors: FAILED_PRECONDITION at a mount point, with nothing below
/// it touched; what was removed before it stays removed.
Status RemoveTree(const std::string& path);
/// The same for the entry `name` of the directory `dir`.
Status RemoveTreeAt(int dir, const std::string& name);

/// Removes one file. Again: what is gone is success.
Status RemoveFile(const std::string& path);

Result<std::string> ReadLink(const std::string& path);

/// Whether there is something at `path`; a dangling symbolic link counts.
bool Exists(const std::string& path);

/// For use as `dir` above, and in `*at` calls.
Result<UniqueFd> OpenDirectory(const std::string& path);

/// What is at the absolute path, with O_PATH. Errors: the errno's; ELOOP where a symbolic link is
/// in the way, at the end or before it. Source: openat2(2), RESOLVE_NO_SYMLINKS.
Result<UniqueFd> OpenWithoutLinks(const std::string& path);

/// `mode` is exact. Errors: ALREADY_EXISTS.
Status MakeFifo(const std::string& path, mode_t mode);

/// Names, without "." and "..", in no order. Errors: INVALID_ARGUMENT with more
/// than `max_entries`.
Result<std::vector<std::string>> ListDirectory(const std::string& path, size_t max_entries);

/// Raises the soft limit of open files to the hard one and gives it.
Result<uint64_t> RaiseOpenFileLimit();

/// `count` characters of [a-z0-9] from the kernel's random source.
std::string RandomName(size_t count);

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
