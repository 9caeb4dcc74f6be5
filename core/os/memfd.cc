// SPDX-License-Identifier: Apache-2.0
#include "core/os/memfd.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace gantry::os {

Result<UniqueFd> CreateMemfd(const std::string& name) {
  UniqueFd fd(memfd_create(name.c_str(), MFD_CLOEXEC));
  if (!fd) {
    return FailErrno(errno, "create memory file '{}'", name);
  }
  return fd;
}

Result<uint64_t> FileSize(int fd) {
  struct stat info = {};
  if (fstat(fd, &info) != 0) {
    return FailErrno(errno, "stat descriptor {}", fd);
  }
  return static_cast<uint64_t>(info.st_size);
}

Result<std::string> ReadAt(int fd, uint64_t offset, size_t count) {
  std::string out(count, '\0');
  size_t done = 0;
  while (done < count) {
    const ssize_t got =
        pread(fd, out.data() + done, count - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return FailErrno(errno, "read descriptor {} at {}", fd, offset);
    }
    if (got == 0) {
      break;
    }
    done += static_cast<size_t>(got);
  }
  out.resize(done);
  return out;
}

Status WriteAt(int fd, uint64_t offset, std::string_view data) {
  while (!data.empty()) {
    const ssize_t put = pwrite(fd, data.data(), data.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) {
      continue;
    }
    if (put < 0) {
      return FailErrno(errno, "write descriptor {} at {}", fd, offset);
    }
    data.remove_prefix(static_cast<size_t>(put));
    offset += static_cast<uint64_t>(put);
  }
  return {};
}

Status Truncate(int fd, uint64_t size) {
  if (ftruncate(fd, static_cast<off_t>(size)) != 0) {
    return FailErrno(errno, "set the size of descriptor {} to {}", fd, size);
  }
  return {};
}

Status PunchHole(int fd, uint64_t begin, uint64_t end) {
  if (begin < end && fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                               static_cast<off_t>(begin), static_cast<off_t>(end - begin)) != 0) {
    return FailErrno(errno, "free bytes {} to {} of descriptor {}", begin, end, fd);
  }
  return {};
}

}  // namespace gantry::os
