// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/memfd.h>

namespace gantry {
namespace {

/// Source: Linux 6.3, include/uapi/linux/memfd.h; older headers lack them.
constexpr unsigned kMfdNoExecSeal = 0x8;
constexpr unsigned kMfdExec = 0x10;

}  // namespace

Result<UniqueFd> CreateMemfd(const std::string& name) {
  UniqueFd fd(memfd_create(name.c_str(), MFD_CLOEXEC));
  if (!fd) {
    return FailErrno(errno, "create memory file '{}'", name);
  }
  return fd;
}

Result<UniqueFd> CreateSealableMemfd(const std::string& name, MemfdUse use) {
  const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  UniqueFd fd(
      memfd_create(name.c_str(), flags | (use == MemfdUse::kExecute ? kMfdExec : kMfdNoExecSeal)));
  if (!fd && errno == EINVAL) {
    fd.reset(memfd_create(name.c_str(), flags));
  }
  if (!fd) {
    return FailErrno(errno, "create memory file '{}'", name);
  }
  return fd;
}

Status SealMemfd(int fd) {
  if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0) {
    return FailErrno(errno, "seal descriptor {}", fd);
  }
  return {};
}

Result<UniqueFd> SealedMemfd(const std::string& name, std::string_view content, MemfdUse use) {
  constexpr mode_t kProgramMode = 0555;
  GANTRY_TRY(const UniqueFd fd, CreateSealableMemfd(name, use));
  GANTRY_CHECK_OK(WriteAt(fd.get(), 0, content));
  if (use == MemfdUse::kExecute && fchmod(fd.get(), kProgramMode) != 0) {
    return FailErrno(errno, "make memory file '{}' a program", name);
  }
  GANTRY_CHECK_OK(SealMemfd(fd.get()));
  return ReopenForReading(fd);
}

Result<UniqueFd> ReopenForReading(const UniqueFd& file) {
  UniqueFd fd(open(Format("/proc/self/fd/{}", file.get()).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    return FailErrno(errno, "open descriptor {} anew", file.get());
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

}  // namespace gantry
