// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <cerrno>

#include <gantry/toolkit/files/file_identity.h>

namespace gantry {

Result<FileIdentity> FileIdentity::Of(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) {
    return FailErrno(errno, "look at '{}'", path);
  }
  constexpr int64_t kNsPerSecond = 1'000'000'000;
  return FileIdentity{info.st_dev, info.st_ino, info.st_size,
                      info.st_mtim.tv_sec * kNsPerSecond + info.st_mtim.tv_nsec};
}

}  // namespace gantry
