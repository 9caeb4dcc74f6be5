// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/sealed_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include <gantry/format.h>

namespace gantry::gvisor {
namespace {

/// Source: Linux 6.3, include/uapi/linux/memfd.h; older headers lack them. A node may refuse files
/// in memory that do not say whether they are to be executed.
constexpr unsigned kMfdNoExecSeal = 0x8;
constexpr unsigned kMfdExec = 0x10;

UniqueFd NewSealable(const std::string& name, FileUse use) {
  const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  UniqueFd fd(
      memfd_create(name.c_str(), flags | (use == FileUse::kExecute ? kMfdExec : kMfdNoExecSeal)));
  if (!fd && errno == EINVAL) {
    fd.reset(memfd_create(name.c_str(), flags));
  }
  return fd;
}

}  // namespace

Result<UniqueFd> SealedFile(const std::string& name, std::string_view content, FileUse use) {
  constexpr mode_t kProgramMode = 0555;
  const UniqueFd fd = NewSealable(name, use);
  if (!fd) {
    return FailErrno(errno, "make the file '{}' in memory", name);
  }
  const ssize_t written = write(fd.get(), content.data(), content.size());
  if (written != static_cast<ssize_t>(content.size())) {
    return FailErrno(written < 0 ? errno : ENOSPC, "write the file '{}' in memory", name);
  }
  if (use == FileUse::kExecute && fchmod(fd.get(), kProgramMode) != 0) {
    return FailErrno(errno, "make the file '{}' in memory a program", name);
  }
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0) {
    return FailErrno(errno, "seal the file '{}' in memory", name);
  }
  return OpenedAnew(fd);
}

Result<UniqueFd> OpenedAnew(const UniqueFd& file) {
  UniqueFd fd(open(Format("/proc/self/fd/{}", file.get()).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    return FailErrno(errno, "open a file in memory anew");
  }
  return fd;
}

}  // namespace gantry::gvisor
