// SPDX-License-Identifier: Apache-2.0
#include "core/toolkit/files/directory.h"

#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include <gantry/format.h>
#include <gantry/unique_fd.h>

namespace gantry {

Result<DirectoryIdentity> IdentityOf(int fd, const std::string& name) {
  struct stat status{};
  if (fstat(fd, &status) < 0) {
    return FailErrno(errno, "look at '{}'", name);
  }
  return DirectoryIdentity{.device = status.st_dev, .inode = status.st_ino};
}

int OpenWithoutMount(int dir, const char* name) {
  open_how how{
      .flags = kDirectoryFlags, .mode = 0, .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS};
  const auto fd = static_cast<int>(syscall(SYS_openat2, dir, name, &how, sizeof(how)));
  if (fd >= 0 || errno != ENOSYS) {
    return fd;
  }
  UniqueFd opened(openat(dir, name, kDirectoryFlags));
  struct stat above{};
  struct stat below{};
  if (!opened || fstat(dir, &above) < 0 || fstat(opened.get(), &below) < 0) {
    return -1;
  }
  if (above.st_dev != below.st_dev) {
    errno = EXDEV;
    return -1;
  }
  return opened.release();
}

}  // namespace gantry
