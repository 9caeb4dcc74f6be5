// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <gantry/toolkit/files/bounded_log.h>

namespace gantry {
namespace {

/// The root of a new file system, mounted nowhere. Source: kernel, filesystems/mount_api.rst,
/// filesystems/tmpfs.rst.
Result<UniqueFd> MakeFileSystem(size_t max_bytes) {
  const UniqueFd system(fsopen("tmpfs", FSOPEN_CLOEXEC));
  if (!system) {
    return FailErrno(errno, "make a file system for a log");
  }
  const std::string size = std::to_string(max_bytes);
  // Beside the file its root.
  for (const auto& [key, value] : {std::pair("size", size.c_str()), std::pair("nr_inodes", "2")}) {
    if (fsconfig(system.get(), FSCONFIG_SET_STRING, key, value, 0) != 0) {
      return FailErrno(errno, "make a file system for a log: {} {}", key, value);
    }
  }
  if (fsconfig(system.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) {
    return FailErrno(errno, "make a file system for a log");
  }
  UniqueFd root(fsmount(system.get(), FSMOUNT_CLOEXEC,
                        MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC));
  if (!root) {
    return FailErrno(errno, "make a file system for a log");
  }
  return root;
}

}  // namespace

Result<UniqueFd> MakeBoundedLog(size_t max_bytes) {
  GANTRY_TRY(const UniqueFd root, MakeFileSystem(max_bytes));
  constexpr mode_t kMode = 0600;
  UniqueFd log(openat(root.get(), "log", O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, kMode));
  if (!log) {
    return FailErrno(errno, "make a log");
  }
  return log;
}

std::string LastBytes(const UniqueFd& log, size_t max_bytes) {
  struct stat status = {};
  if (!log || fstat(log.get(), &status) != 0) {
    return {};
  }
  const auto size = static_cast<size_t>(std::max<off_t>(status.st_size, 0));
  std::string text(std::min(size, max_bytes), '\0');
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = pread(log.get(), text.data() + done, text.size() - done,
                            static_cast<off_t>(size - text.size() + done));
    if (n <= 0) {
      break;
    }
    done += static_cast<size_t>(n);
  }
  text.resize(done);
  return text;
}

}  // namespace gantry
