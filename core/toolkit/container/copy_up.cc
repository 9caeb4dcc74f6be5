// SPDX-License-Identifier: Apache-2.0
#include "core/toolkit/container/copy_up.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <string>
#include <string_view>

#include <gantry/format.h>
#include <gantry/unique_fd.h>

namespace gantry::container {
namespace {

/// Three descriptors each.
constexpr int kMaxDepth = 128;

/// What `name` in `dir` itself is: no link's end, and nothing that is mounted there.
UniqueFd OpenEntry(int dir, const char* name, uint64_t flags) {
  open_how how{};
  how.flags = flags | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
  return UniqueFd(static_cast<int>(syscall(SYS_openat2, dir, name, &how, sizeof(how))));
}

/// Owner, then mode, which the change of an owner changes; then times.
Status CopyProperties(int to, const struct stat& info, const std::string& name) {
  const std::array<timespec, 2> times{info.st_atim, info.st_mtim};
  if (fchown(to, info.st_uid, info.st_gid) != 0 || fchmod(to, info.st_mode & 07777U) != 0 ||
      futimens(to, times.data()) != 0) {
    return FailErrno(errno, "copy the owner, mode and times of '{}'", name);
  }
  return {};
}

Status CopyLink(int from, int to, const char* name, const struct stat& info) {
  std::array<char, PATH_MAX> text{};
  const ssize_t size = readlinkat(from, name, text.data(), text.size() - 1);
  if (size < 0 || symlinkat(text.data(), to, name) != 0 ||
      fchownat(to, name, info.st_uid, info.st_gid, AT_SYMLINK_NOFOLLOW) != 0) {
    return FailErrno(errno, "copy the link '{}'", name);
  }
  return {};
}

/// `entry` is the file, not open yet: by its descriptor nothing else is opened in its place, which
/// could be a device.
Status CopyRegular(const UniqueFd& entry, int to, const char* name, const struct stat& info) {
  constexpr size_t kAtOnce = 1 << 20;
  const UniqueFd source(
      open(Format("/proc/self/fd/{}", entry.get()).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!source) {
    return FailErrno(errno, "open '{}'", name);
  }
  const UniqueFd copy(openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!copy) {
    return FailErrno(errno, "make '{}'", name);
  }
  for (;;) {
    const ssize_t copied = sendfile(copy.get(), source.get(), nullptr, kAtOnce);
    if (copied < 0 && errno == EINTR) {
      continue;
    }
    if (copied < 0) {
      return FailErrno(errno, "copy '{}'", name);
    }
    if (copied == 0) {
      return CopyProperties(copy.get(), info, name);
    }
  }
}

Status CopyDirectory(int from, int to, int depth);

Status CopyBelow(int from, int to, const char* name, int depth) {
  const UniqueFd source = OpenEntry(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!source) {
    return FailErrno(errno, "open '{}'", name);
  }
  struct stat info{};
  if (fstat(source.get(), &info) != 0 || mkdirat(to, name, 0700) != 0) {
    return FailErrno(errno, "make '{}'", name);
  }
  const UniqueFd copy = OpenEntry(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!copy) {
    return FailErrno(errno, "open the copy of '{}'", name);
  }
  GANTRY_CHECK_OK(CopyDirectory(source.get(), copy.get(), depth + 1));
  return CopyProperties(copy.get(), info, name);
}

Status CopyEntry(int from, int to, const char* name, int depth) {
  struct stat info{};
  const UniqueFd entry = OpenEntry(from, name, O_PATH | O_NOFOLLOW);
  if (!entry && errno == EXDEV) {
    // Something is mounted there.
    return {};
  }
  if (!entry || fstat(entry.get(), &info) != 0) {
    return FailErrno(errno, "look at '{}'", name);
  }
  switch (info.st_mode & S_IFMT) {
    case S_IFDIR:
      return CopyBelow(from, to, name, depth);
    case S_IFREG:
      return CopyRegular(entry, to, name, info);
    case S_IFLNK:
      return CopyLink(from, to, name, info);
    default:
      return {};
  }
}

Status CopyDirectory(int from, int to, int depth) {
  if (depth > kMaxDepth) {
    return Fail(Code::kResourceExhausted, "copy a directory: it is more than {} deep", kMaxDepth);
  }
  UniqueFd own(openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!own) {
    return FailErrno(errno, "open the directory");
  }
  const auto close = [](DIR* dir) { closedir(dir); };
  const std::unique_ptr<DIR, decltype(close)> dir(fdopendir(own.get()), close);
  if (!dir) {
    return FailErrno(errno, "open the directory");
  }
  // The stream closes it.
  [[maybe_unused]] const int taken = own.release();
  for (;;) {
    errno = 0;
    const dirent* entry = readdir(dir.get());
    if (entry == nullptr) {
      break;
    }
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") {
      GANTRY_CHECK_OK(CopyEntry(from, to, entry->d_name, depth));
    }
  }
  if (errno != 0) {
    return FailErrno(errno, "read the directory");
  }
  return {};
}

}  // namespace

Status CopyUp(int from, int to) {
  Status copied = CopyDirectory(from, to, 0);
  if (!copied) {
    return std::unexpected(std::move(copied).error().Within("copy what is under the tmpfs"));
  }
  return {};
}

}  // namespace gantry::container
