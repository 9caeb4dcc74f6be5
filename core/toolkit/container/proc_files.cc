// SPDX-License-Identifier: Apache-2.0
#include "core/toolkit/container/proc_files.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/toolkit/container/descriptors.h"

namespace gantry::container {

Result<UniqueFd> OpenProc() {
  UniqueFd proc(::open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!proc) {
    return FailErrno(errno, "open '/proc'");
  }
  struct statfs about{};
  if (::fstatfs(proc.get(), &about) != 0) {
    return FailErrno(errno, "look at '/proc'");
  }
  if (about.f_type != PROC_SUPER_MAGIC) {
    return Fail(Code::kFailedPrecondition, "open '/proc': it is no proc file system; mount one");
  }
  return AboveStreams(std::move(proc));
}

Result<UniqueFd> OpenProcFile(int proc, const std::string& path, int flags) {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags) | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  UniqueFd fd(static_cast<int>(::syscall(SYS_openat2, proc, path.c_str(), &how, sizeof(how))));
  if (!fd) {
    return FailErrno(errno, "open '/proc/{}'", path);
  }
  return fd;
}

Status WriteProcFile(int proc, const std::string& path, std::string_view text) {
  GANTRY_TRY(const UniqueFd fd, OpenProcFile(proc, path, O_WRONLY));
  const ssize_t written = ::write(fd.get(), text.data(), text.size());
  if (written < 0) {
    return FailErrno(errno, "write '{}' to '/proc/{}'", text, path);
  }
  if (static_cast<size_t>(written) != text.size()) {
    return Fail(Code::kInternal, "write '{}' to '/proc/{}': {} bytes were taken", text, path,
                written);
  }
  return {};
}

Result<std::string> ReadProcFile(int proc, const std::string& path) {
  constexpr size_t kMost = 64 << 10;
  GANTRY_TRY(const UniqueFd fd, OpenProcFile(proc, path, O_RDONLY));
  std::string text(kMost, '\0');
  size_t size = 0;
  while (size < kMost) {
    const ssize_t got = ::read(fd.get(), text.data() + size, kMost - size);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return FailErrno(errno, "read '/proc/{}'", path);
    }
    if (got == 0) {
      break;
    }
    size += static_cast<size_t>(got);
  }
  text.resize(size);
  return text;
}

Result<std::string> OwnFolder(int proc) {
  char text[64];
  const ssize_t length = ::readlinkat(proc, "thread-self", text, sizeof(text));
  if (length <= 0 || length == sizeof(text)) {
    return FailErrno(length < 0 ? errno : ENAMETOOLONG, "read '/proc/thread-self'");
  }
  return std::string(text, static_cast<size_t>(length));
}

}  // namespace gantry::container
