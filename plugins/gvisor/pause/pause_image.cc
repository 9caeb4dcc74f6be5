// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/pause/pause_image.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <string>

#include <gantry/format.h>

#include "plugins/gvisor/pause/erofs_image.h"

namespace gantry::gvisor {
namespace {

/// Source: Linux 6.3, include/uapi/linux/memfd.h; older headers lack it. A node may refuse
/// files in memory that do not say whether they are to be executed.
constexpr unsigned kMfdNoExecSeal = 0x8;

UniqueFd NewMemfd() {
  UniqueFd fd(memfd_create("gantry-pause", MFD_CLOEXEC | MFD_ALLOW_SEALING | kMfdNoExecSeal));
  if (!fd && errno == EINVAL) {
    fd.reset(memfd_create("gantry-pause", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  }
  return fd;
}

Result<std::string> PauseImageText() {
  const std::span<const unsigned char> program = PauseProgram();
  const std::string_view content(reinterpret_cast<const char*>(program.data()), program.size());
  return ErofsImage({{"pause", {S_IFREG | 0755, content}},
                     {"dev", {S_IFDIR | 0755, {}}},
                     {"proc", {S_IFDIR | 0755, {}}},
                     {"sys", {S_IFDIR | 0755, {}}},
                     {"tmp", {S_IFDIR | 0755, {}}}});
}

Result<UniqueFd> SealedImage() {
  GANTRY_TRY(const std::string image, PauseImageText());
  UniqueFd fd = NewMemfd();
  if (!fd) {
    return FailErrno(errno, "make the image of a pod's root");
  }
  const ssize_t written = write(fd.get(), image.data(), image.size());
  if (written != static_cast<ssize_t>(image.size())) {
    return FailErrno(written < 0 ? errno : ENOSPC, "write the image of a pod's root");
  }
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0) {
    return FailErrno(errno, "seal the image of a pod's root");
  }
  return fd;
}

/// For reading, since Linux before 6.7 maps no sealed file shared that is open for writing.
/// Source: Linux 6.7, mm/mmap.c.
Result<UniqueFd> OpenedAnew(const UniqueFd& file) {
  const std::string path = Format("/proc/self/fd/{}", file.get());
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    return FailErrno(errno, "open the image of a pod's root");
  }
  return fd;
}

}  // namespace

Result<UniqueFd> PauseImage() {
  /// Guards `image`: workers of all pods come here.
  static std::mutex mutex;
  static UniqueFd image;
  const std::lock_guard lock(mutex);
  if (!image) {
    GANTRY_TRY(UniqueFd made, SealedImage());
    GANTRY_TRY(image, OpenedAnew(made));
  }
  return OpenedAnew(image);
}

}  // namespace gantry::gvisor
