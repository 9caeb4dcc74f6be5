// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include <gantry/files.h>
#include <gantry/format.h>
#include <gantry/unique_fd.h>

namespace gantry {
namespace {

struct CloseDirectory {
  void operator()(DIR* dir) const { closedir(dir); }
};

using Directory = std::unique_ptr<DIR, CloseDirectory>;

Result<size_t> ReadInto(int fd, char* out, size_t bytes, const std::string& path) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t n = read(fd, out + done, bytes - done);
    if (n == 0) {
      break;
    }
    if (n < 0 && errno != EINTR) {
      return FailErrno(errno, "read '{}'", path);
    }
    done += n > 0 ? static_cast<size_t>(n) : 0;
  }
  return done;
}

/// A regular file, as those of procfs are, too. Looked at before it is opened: a FIFO would wait
/// for its other end, and a device may do anything.
Result<UniqueFd> OpenToRead(const std::string& path) {
  const UniqueFd place(open(path.c_str(), O_PATH | O_CLOEXEC));
  struct stat info = {};
  if (!place || fstat(place.get(), &info) != 0) {
    return FailErrno(errno, "open '{}'", path);
  }
  if (!S_ISREG(info.st_mode)) {
    return Fail(Code::kInvalidArgument, "open '{}': it is no regular file", path);
  }
  UniqueFd fd(
      open(Format("/proc/self/fd/{}", place.get()).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fd) {
    return FailErrno(errno, "open '{}'", path);
  }
  return fd;
}

std::vector<std::string> NamesIn(DIR* dir) {
  std::vector<std::string> names;
  while (const dirent* entry = readdir(dir)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") {
      names.emplace_back(name);
    }
  }
  return names;
}

}  // namespace

Result<std::string> ReadFile(const std::string& path, size_t max_bytes) {
  GANTRY_TRY(const UniqueFd fd, OpenToRead(path));
  std::string data;
  constexpr size_t kStep = 16384;
  for (;;) {
    const size_t before = data.size();
    data.resize(before + kStep);
    GANTRY_TRY(const size_t n, ReadInto(fd.get(), data.data() + before, kStep, path));
    data.resize(before + n);
    if (data.size() > max_bytes) {
      return Fail(Code::kResourceExhausted, "read '{}': more than {} bytes", path, max_bytes);
    }
    if (n < kStep) {
      return data;
    }
  }
}

Result<std::string> ReadTail(const std::string& path, size_t max_bytes) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd) {
    return FailErrno(errno, "open '{}'", path);
  }
  struct stat info = {};
  if (fstat(fd.get(), &info) != 0) {
    return FailErrno(errno, "stat '{}'", path);
  }
  const auto skip = std::max<off_t>(0, info.st_size - static_cast<off_t>(max_bytes));
  if (lseek(fd.get(), skip, SEEK_SET) < 0) {
    return FailErrno(errno, "seek in '{}'", path);
  }
  std::string data(max_bytes, '\0');
  GANTRY_TRY(const size_t n, ReadInto(fd.get(), data.data(), max_bytes, path));
  data.resize(n);
  return data;
}

Status WriteFile(const std::string& path, std::string_view data, mode_t mode) {
  const UniqueFd fd(
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!fd) {
    return FailErrno(errno, "create '{}'", path);
  }
  // The mode is meant as it is, whatever the umask.
  if (fchmod(fd.get(), mode) != 0) {
    return FailErrno(errno, "set the mode of '{}'", path);
  }
  while (!data.empty()) {
    const ssize_t n = write(fd.get(), data.data(), data.size());
    if (n < 0 && errno != EINTR) {
      return FailErrno(errno, "write '{}'", path);
    }
    data.remove_prefix(n > 0 ? static_cast<size_t>(n) : 0);
  }
  return {};
}

std::string UnfinishedOf(const std::string& path) { return path + ".gantry"; }

Status ReplaceFile(const std::string& path, std::string_view data, mode_t mode) {
  const std::string part = UnfinishedOf(path);
  Status done = WriteFile(part, data, mode);
  if (done && rename(part.c_str(), path.c_str()) != 0) {
    done = FailErrno(errno, "replace '{}'", path);
  }
  if (!done) {
    unlink(part.c_str());
  }
  return done;
}

Status RemoveFile(const std::string& path) {
  if (unlink(path.c_str()) != 0 && errno != ENOENT && errno != ENOTDIR) {
    return FailErrno(errno, "remove '{}'", path);
  }
  return {};
}

bool Exists(const std::string& path) {
  struct stat info = {};
  return lstat(path.c_str(), &info) == 0;
}

bool IsExecutable(const std::string& path) {
  struct stat info = {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0;
}

Result<std::vector<std::string>> ListDirectory(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const Directory dir(fd ? fdopendir(fd.get()) : nullptr);
  if (!dir) {
    if (errno == ENOENT || errno == ENOTDIR || errno == ESRCH) {
      return std::vector<std::string>();
    }
    return FailErrno(errno, "list '{}'", path);
  }
  // The stream owns the descriptor from here on.
  static_cast<void>(fd.release());
  return NamesIn(dir.get());
}

Result<std::string> FindInPath(std::string_view path, std::string_view name) {
  while (!path.empty()) {
    const size_t colon = path.find(':');
    std::string candidate(path.substr(0, colon));
    path.remove_prefix(colon == std::string_view::npos ? path.size() : colon + 1);
    candidate.append("/").append(name);
    if (candidate[0] == '/' && candidate[1] != '/' && IsExecutable(candidate)) {
      return candidate;
    }
  }
  return Fail(Code::kNotFound, "find '{}': not in PATH", name);
}

}  // namespace gantry
