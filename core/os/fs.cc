// SPDX-License-Identifier: Apache-2.0
#include "core/os/fs.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

namespace gantry::os {

Status MakeDirs(const std::string& path, mode_t mode) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (mkdir(part.c_str(), mode) < 0) {
      const int failed = errno;
      struct stat status{};
      // A read-only parent answers EROFS or EACCES though the directory exists.
      if (stat(part.c_str(), &status) < 0) {
        return FailErrno(failed, "make directory '{}'", part);
      }
      if (!S_ISDIR(status.st_mode)) {
        return Fail(Code::kFailedPrecondition, "make directory '{}': no directory is there", part);
      }
    }
    if (end == std::string::npos) {
      return {};
    }
  }
}

Result<UniqueFd> OpenDirectory(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) {
    return FailErrno(errno, "open directory '{}'", path);
  }
  return fd;
}

Status MakeFifo(const std::string& path, mode_t mode) {
  if (mkfifo(path.c_str(), mode) < 0) {
    return FailErrno(errno, "make FIFO '{}'", path);
  }
  if (chmod(path.c_str(), mode) < 0) {
    return FailErrno(errno, "set the mode of '{}'", path);
  }
  return {};
}

Result<uint64_t> RaiseOpenFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) < 0) {
    return FailErrno(errno, "get the limit of open files");
  }
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) < 0) {
    return FailErrno(errno, "set the limit of open files to {}", limit.rlim_max);
  }
  return static_cast<uint64_t>(limit.rlim_cur);
}

Result<TempDir> TempDir::Create(const std::string& prefix) {
  constexpr int kAttempts = 16;
  for (int i = 0; i < kAttempts; ++i) {
    std::string path = prefix + RandomName(10);
    if (mkdir(path.c_str(), 0700) == 0) {
      return TempDir(std::move(path));
    }
    if (errno != EEXIST) {
      return FailErrno(errno, "make directory '{}'", path);
    }
  }
  return Fail(Code::kAlreadyExists, "make directory '{}...': no free name", prefix);
}

TempDir::TempDir(TempDir&& other) noexcept : path_(std::exchange(other.path_, {})) {}

TempDir& TempDir::operator=(TempDir&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

TempDir::~TempDir() {
  if (!path_.empty()) {
    IgnoreError(RemoveTree(path_), "a destructor can tell nobody");
  }
}

}  // namespace gantry::os
