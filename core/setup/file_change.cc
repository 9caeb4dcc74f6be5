// SPDX-License-Identifier: Apache-2.0
#include "core/setup/file_change.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>
#include <vector>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/unique_fd.h>

#include "core/os/fs.h"

namespace gantry::setup {
namespace {

constexpr size_t kMostFileBytes = size_t{4} << 20;
constexpr size_t kMostAttributes = size_t{64} << 10;

/// Who may write the folder may put another file into the place of any.
Status CheckFolder(const std::string& path) {
  struct stat status{};
  const std::string folder = FolderOf(path);
  if (stat(folder.c_str(), &status) != 0) {
    return errno == ENOENT ? Status() : FailErrno(errno, "look at '{}'", folder);
  }
  if ((status.st_mode & S_IWOTH) != 0) {
    return Fail(Code::kFailedPrecondition,
                "'{}' can be written by everybody: chmod o-w it, then do this again", folder);
  }
  return {};
}

Status WriteAll(int fd, std::string_view data, const std::string& path) {
  while (!data.empty()) {
    const ssize_t written = write(fd, data.data(), data.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      return FailErrno(errno, "write '{}'", path);
    }
    data.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

/// SELinux's label, and lists of who may read it.
Status CopyAttributes(const std::string& path, int to) {
  std::vector<char> names(kMostAttributes);
  const ssize_t size = listxattr(path.c_str(), names.data(), names.size());
  if (size < 0) {
    return errno == ENOTSUP ? Status() : FailErrno(errno, "list attributes of '{}'", path);
  }
  std::vector<char> value(kMostAttributes);
  for (const char* name = names.data(); name < names.data() + size;
       name += std::string_view(name).size() + 1) {
    const ssize_t length = getxattr(path.c_str(), name, value.data(), value.size());
    if (length < 0 || fsetxattr(to, name, value.data(), static_cast<size_t>(length), 0) != 0) {
      return FailErrno(errno, "copy attribute '{}' of '{}'", name, path);
    }
  }
  return {};
}

/// The new file is as the old one is, but for what is in it.
Status Resemble(const std::string& path, int to) {
  struct stat old{};
  if (lstat(path.c_str(), &old) != 0) {
    return errno == ENOENT && fchmod(to, 0644) == 0 ? Status()
                                                    : FailErrno(errno, "look at '{}'", path);
  }
  if (fchown(to, old.st_uid, old.st_gid) != 0 || fchmod(to, old.st_mode & 07777) != 0) {
    return FailErrno(errno, "give '{}' the owner and mode of the old one", path);
  }
  return CopyAttributes(path, to);
}

Status SyncFolder(const std::string& path) {
  GANTRY_TRY(const UniqueFd folder, os::OpenDirectory(FolderOf(path)));
  return fsync(folder.get()) == 0 ? Status() : FailErrno(errno, "sync '{}'", FolderOf(path));
}

Status Replace(const std::string& path, std::string_view text) {
  // Not `*.toml`: containerd would read it, too.
  const std::string temporary = Format("{}.{}.gantry-new", path, RandomName(8));
  const UniqueFd fd(
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) {
    return FailErrno(errno, "create '{}'", temporary);
  }
  Status done = WriteAll(fd.get(), text, temporary);
  if (done) {
    done = Resemble(path, fd.get());
  }
  if (done && fsync(fd.get()) != 0) {
    done = FailErrno(errno, "sync '{}'", temporary);
  }
  if (done && rename(temporary.c_str(), path.c_str()) != 0) {
    done = FailErrno(errno, "replace '{}'", path);
  }
  if (!done) {
    unlink(temporary.c_str());
    return done;
  }
  return SyncFolder(path);
}

Status Remove(const FileChange& change) {
  GANTRY_CHECK_OK(RemoveFile(change.path));
  if (change.remove_folder && rmdir(FolderOf(change.path).c_str()) == 0) {
    return {};
  }
  return SyncFolder(change.path);
}

}  // namespace

std::string FolderOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

Result<std::optional<std::string>> ReadForChange(const std::string& path) {
  struct stat status{};
  GANTRY_CHECK_OK(CheckFolder(path));
  if (lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) {
      return std::optional<std::string>();
    }
    return FailErrno(errno, "look at '{}'", path);
  }
  if (S_ISLNK(status.st_mode)) {
    const auto target = ReadLink(path);
    return Fail(Code::kFailedPrecondition,
                "'{}' is a symbolic link to '{}': whoever made it has the file; name that one with "
                "--containerd-config, or replace the link by a file",
                path, target ? *target : "?");
  }
  if (!S_ISREG(status.st_mode)) {
    return Fail(Code::kFailedPrecondition, "'{}' is no regular file", path);
  }
  if (status.st_nlink > 1) {
    return Fail(
        Code::kFailedPrecondition,
        "'{}' has {} names (hard links), and would change under one of them only: make it a "
        "file of its own",
        path, status.st_nlink);
  }
  GANTRY_TRY(std::string text, ReadFile(path, kMostFileBytes));
  return std::optional<std::string>(std::move(text));
}

Status CheckWritable(const std::string& path) {
  std::string folder = FolderOf(path);
  while (!folder.empty() && !Exists(folder)) {
    folder = FolderOf(folder);
  }
  // faccessat(2) knows a read-only file system, which root's rights do not matter to.
  if (access(folder.empty() ? "/" : folder.c_str(), W_OK) != 0 ||
      (Exists(path) && access(path.c_str(), W_OK) != 0)) {
    return FailErrno(errno, "write '{}'", path);
  }
  return {};
}

Status Apply(const FileChange& change) {
  GANTRY_TRY(const auto now, ReadForChange(change.path));
  if (now != change.before) {
    return Fail(Code::kAborted, "'{}' was changed by somebody else meanwhile: do this again",
                change.path);
  }
  if (!change.after) {
    return Remove(change);
  }
  GANTRY_CHECK_OK(os::MakeDirs(FolderOf(change.path), 0755));
  return Replace(change.path, *change.after);
}

}  // namespace gantry::setup
