// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/storage/disk_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <string_view>

#include <gantry/toolkit/files/files.h>
#include <gantry/unique_fd.h>

namespace gantry::vmm {

Result<std::string> DiskFileOf(uint32_t major, uint32_t minor) {
  constexpr size_t kMaxEvent = 4096;
  constexpr std::string_view kName = "\nDEVNAME=";
  const auto event = ReadFile(Format("/sys/dev/block/{}:{}/uevent", major, minor), kMaxEvent);
  const std::string text = "\n" + event.value_or("");
  const size_t at = text.find(kName);
  if (at == text.npos) {
    return Fail(Code::kInvalidArgument, "this node has no block device {}:{}", major, minor);
  }
  const size_t begin = at + kName.size();
  return "/dev/" + text.substr(begin, text.find('\n', begin) - begin);
}

Status CheckUnused(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) {
    return FailErrno(errno, "look at '{}'", path);
  }
  if (!S_ISBLK(info.st_mode)) {
    return {};
  }
  // Whoever has mounted a device has it alone. Source: open(2), O_EXCL without O_CREAT.
  const UniqueFd alone(::open(path.c_str(), O_RDONLY | O_EXCL | O_CLOEXEC));
  if (alone) {
    return {};
  }
  if (errno == EBUSY) {
    return Fail(Code::kFailedPrecondition,
                "'{}' is in use on this node (mounted, or a part of something): unmount it first",
                path);
  }
  return FailErrno(errno, "open '{}'", path);
}

}  // namespace gantry::vmm
