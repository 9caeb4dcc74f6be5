// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>

#include <gantry/format.h>
#include <gantry/toolkit/files/open_regular.h>

namespace gantry {
namespace {

/// What of `path` is below `prefix`; empty: it is not.
std::string_view RestBelow(std::string_view path, std::string_view prefix) {
  while (prefix.ends_with('/')) {
    prefix.remove_suffix(1);
  }
  if (!path.starts_with(prefix) || path.size() <= prefix.size() || path[prefix.size()] != '/') {
    return {};
  }
  path.remove_prefix(prefix.size());
  path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
  return path;
}

/// A descriptor that opens nothing.
Result<UniqueFd> LookAt(const std::string& prefix, const std::string& rest,
                        const std::string& path) {
  const UniqueFd folder(open(prefix.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder) {
    return FailErrno(errno, "open '{}' below '{}'", path, prefix);
  }
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  UniqueFd file(
      static_cast<int>(syscall(SYS_openat2, folder.get(), rest.c_str(), &how, sizeof(how))));
  if (!file && (errno == ELOOP || errno == EXDEV)) {
    return Fail(Code::kPermissionDenied, "open '{}': it leads elsewhere than below '{}'", path,
                prefix);
  }
  if (!file) {
    return FailErrno(errno, "open '{}'", path);
  }
  return file;
}

}  // namespace

Result<UniqueFd> OpenRegularBelow(const std::string& path, std::span<const std::string> prefixes) {
  if (!path.starts_with('/')) {
    return Fail(Code::kInvalidArgument, "open '{}': no absolute path", path);
  }
  for (const std::string& prefix : prefixes) {
    const std::string_view rest = RestBelow(path, prefix);
    if (rest.empty()) {
      continue;
    }
    GANTRY_TRY(const UniqueFd file, LookAt(prefix, std::string(rest), path));
    struct stat info = {};
    if (fstat(file.get(), &info) != 0) {
      return FailErrno(errno, "stat '{}'", path);
    }
    if (!S_ISREG(info.st_mode)) {
      return Fail(Code::kInvalidArgument, "open '{}': it is no regular file", path);
    }
    UniqueFd opened(open(Format("/proc/self/fd/{}", file.get()).c_str(),
                         O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (!opened) {
      return FailErrno(errno, "open '{}'", path);
    }
    return opened;
  }
  return Fail(Code::kPermissionDenied, "open '{}': it is below no directory that is allowed", path);
}

Result<UniqueFd> OpenWithoutLinks(const std::string& path) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_NO_SYMLINKS;
  UniqueFd fd(static_cast<int>(syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof(how))));
  if (!fd) {
    return FailErrno(errno, "open '{}' without following links", path);
  }
  return fd;
}

}  // namespace gantry
