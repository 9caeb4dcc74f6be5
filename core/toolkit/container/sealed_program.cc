// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include <gantry/toolkit/container/sealed_program.h>
#include <gantry/unique_fd.h>

namespace gantry::container {
namespace {

constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U  // Debian 12's headers do not have it.
#endif

// Executable where the node's default is not (vm.memfd_noexec, Linux 6.3); older kernels do not
// know the flag.
UniqueFd MakeMemory() {
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  UniqueFd fd(static_cast<int>(::syscall(SYS_memfd_create, "sealed", kFlags | MFD_EXEC)));
  if (!fd && errno == EINVAL) {
    fd.reset(static_cast<int>(::syscall(SYS_memfd_create, "sealed", kFlags)));
  }
  return fd;
}

Status Copy(const UniqueFd& from, const UniqueFd& to) {
  struct stat about{};
  if (::fstat(from.get(), &about) != 0) {
    return FailErrno(errno, "copy the program into memory: look at it");
  }
  for (off_t left = about.st_size; left > 0;) {
    const ssize_t copied = ::sendfile(to.get(), from.get(), nullptr, static_cast<size_t>(left));
    if (copied < 0 && errno == EINTR) {
      continue;
    }
    if (copied <= 0) {
      return FailErrno(copied < 0 ? errno : EIO, "copy the program into memory");
    }
    left -= copied;
  }
  return {};
}

}  // namespace

Status RunSealed(char** argv, char** envp) {
  const UniqueFd own(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  if (!own) {
    return FailErrno(errno, "open '/proc/self/exe'");
  }
  // No other file has seals.
  const int seals = ::fcntl(own.get(), F_GET_SEALS);
  if (seals >= 0 && (seals & kSeals) == kSeals) {
    return {};
  }
  const UniqueFd memory = MakeMemory();
  if (!memory) {
    return FailErrno(errno, "make memory for a copy of the program");
  }
  GANTRY_CHECK_OK(Copy(own, memory));
  if (::fchmod(memory.get(), 0500) != 0 || ::fcntl(memory.get(), F_ADD_SEALS, kSeals) != 0) {
    return FailErrno(errno, "seal a copy of the program");
  }
  ::syscall(SYS_execveat, memory.get(), "", argv, envp, AT_EMPTY_PATH);
  return FailErrno(errno, "execute a sealed copy of the program");
}

}  // namespace gantry::container
