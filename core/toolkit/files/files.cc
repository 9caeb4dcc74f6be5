// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/unique_fd.h>

namespace gantry {
namespace {

constexpr std::string_view kUnfinished = ".tmp";

struct CloseDirectory {
  void operator()(DIR* dir) const { closedir(dir); }
};

using Directory = std::unique_ptr<DIR, CloseDirectory>;

/// A regular file, as those of procfs are, too. Looked at before it is opened: a FIFO would wait
/// for its other end, and a device may do anything. `flags`: O_NOFOLLOW or none.
Result<UniqueFd> OpenToRead(int dir, const std::string& path, int flags) {
  const UniqueFd place(openat(dir, path.c_str(), O_PATH | O_CLOEXEC | flags));
  struct stat info = {};
  if (!place || fstat(place.get(), &info) != 0) {
    return FailErrno(errno, "open '{}'", path);
  }
  if (S_ISLNK(info.st_mode)) {
    return FailErrno(ELOOP, "open '{}'", path);
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

/// Reads from where `fd` is up to the file's end.
Result<std::string> ReadAll(int fd, const std::string& path, size_t max_bytes) {
  constexpr size_t kChunk = 4096;
  std::string data;
  while (true) {
    const size_t old_size = data.size();
    // One byte more than allowed tells "too long" from "just fits".
    const size_t want = std::min(std::max(kChunk, old_size), max_bytes - old_size + 1);
    data.resize(old_size + want);
    const ssize_t got = read(fd, data.data() + old_size, want);
    data.resize(old_size + (got > 0 ? static_cast<size_t>(got) : 0));
    if (got < 0 && errno != EINTR) {
      return FailErrno(errno, "read '{}'", path);
    }
    if (data.size() > max_bytes) {
      return Fail(Code::kInvalidArgument, "read '{}': longer than {} bytes", path, max_bytes);
    }
    if (got == 0) {
      return data;
    }
  }
}

/// Writes all of `data`, in as few calls as the kernel allows.
Status WriteAll(int fd, const std::string& path, std::string_view data) {
  do {
    const ssize_t put = write(fd, data.data(), data.size());
    if (put < 0 && errno != EINTR) {
      return FailErrno(errno, "write '{}'", path);
    }
    data.remove_prefix(put > 0 ? static_cast<size_t>(put) : 0);
  } while (!data.empty());
  return {};
}

/// The mode is meant as it is, whatever the umask.
Status FillFile(int fd, const std::string& path, std::string_view data, mode_t mode) {
  if (fchmod(fd, mode) != 0) {
    return FailErrno(errno, "set the mode of '{}'", path);
  }
  return WriteAll(fd, path, data);
}

}  // namespace

Result<std::string> ReadFile(const std::string& path, size_t max_bytes) {
  GANTRY_TRY(const UniqueFd fd, OpenToRead(AT_FDCWD, path, 0));
  return ReadAll(fd.get(), path, max_bytes);
}

Result<std::string> ReadFileAt(int dir, const std::string& name, size_t max_bytes) {
  GANTRY_TRY(const UniqueFd fd, OpenToRead(dir, name, O_NOFOLLOW));
  return ReadAll(fd.get(), name, max_bytes);
}

Result<std::string> ReadTail(const std::string& path, size_t max_bytes) {
  GANTRY_TRY(const UniqueFd fd, OpenToRead(AT_FDCWD, path, 0));
  struct stat info = {};
  if (fstat(fd.get(), &info) != 0) {
    return FailErrno(errno, "stat '{}'", path);
  }
  const off_t skip = std::max<off_t>(0, info.st_size - static_cast<off_t>(max_bytes));
  // What is written meanwhile would make it longer than allowed.
  std::string data(std::min(max_bytes, static_cast<size_t>(info.st_size)), '\0');
  size_t done = 0;
  while (done < data.size()) {
    const ssize_t got =
        pread(fd.get(), data.data() + done, data.size() - done, skip + static_cast<off_t>(done));
    if (got < 0 && errno != EINTR) {
      return FailErrno(errno, "read '{}'", path);
    }
    if (got == 0) {
      break;
    }
    done += got > 0 ? static_cast<size_t>(got) : 0;
  }
  data.resize(done);
  return data;
}

Status WriteFile(const std::string& path, std::string_view data, mode_t mode) {
  const UniqueFd fd(
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!fd) {
    return FailErrno(errno, "create '{}'", path);
  }
  return FillFile(fd.get(), path, data, mode);
}

Status WriteExisting(const std::string& path, std::string_view data) {
  return WriteExistingAt(AT_FDCWD, path, data);
}

Status WriteExistingAt(int dir, const std::string& name, std::string_view data) {
  const UniqueFd fd(openat(dir, name.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd) {
    return FailErrno(errno, "open '{}'", name);
  }
  return WriteAll(fd.get(), name, data);
}

Status ReplaceFile(const std::string& path, std::string_view data, mode_t mode) {
  const std::string temporary = Format("{}.{}{}", path, RandomName(8), kUnfinished);
  const UniqueFd fd(
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) {
    return FailErrno(errno, "create '{}'", temporary);
  }
  Status done = FillFile(fd.get(), temporary, data, mode);
  if (done && rename(temporary.c_str(), path.c_str()) != 0) {
    done = FailErrno(errno, "replace '{}'", path);
  }
  if (!done) {
    unlink(temporary.c_str());
  }
  return done;
}

Status RemoveUnfinished(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const std::string prefix = path.substr(slash + 1) + ".";
  GANTRY_TRY(const std::vector<std::string> names, ListDirectory(folder));
  for (const std::string& name : names) {
    // NAME.RANDOM.tmp; with a dot in between it is another file's.
    if (name.size() > prefix.size() + kUnfinished.size() && name.starts_with(prefix) &&
        name.find('.', prefix.size()) == name.size() - kUnfinished.size() &&
        name.ends_with(kUnfinished)) {
      GANTRY_CHECK_OK(RemoveFile(Format("{}/{}", folder, name)));
    }
  }
  return {};
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

Result<std::vector<std::string>> ListDirectory(const std::string& path, size_t max_entries) {
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
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = readdir(dir.get())) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") {
      continue;
    }
    if (names.size() == max_entries) {
      return Fail(Code::kInvalidArgument, "list '{}': more than {} entries", path, max_entries);
    }
    names.emplace_back(name);
    errno = 0;
  }
  // Of a process that has ended meanwhile what was there has been read.
  if (errno != 0 && errno != ESRCH && errno != ENOENT) {
    return FailErrno(errno, "list '{}'", path);
  }
  return names;
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

std::string RandomName(size_t count) {
  constexpr std::string_view kAlphabet = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::string name(count, 'a');
  // At most 256 bytes come whole or not at all, and it fails only before boot
  // is over; names are made with O_EXCL, so a weak one costs a retry at worst.
  for (size_t at = 0; at < count; at += 256) {
    const size_t part = std::min<size_t>(count - at, 256);
    [[maybe_unused]] const ssize_t got = getrandom(name.data() + at, part, 0);
  }
  for (char& c : name) {
    c = kAlphabet[static_cast<unsigned char>(c) % kAlphabet.size()];
  }
  return name;
}

Result<std::string> ReadLink(const std::string& path) {
  std::string target(256, '\0');
  while (true) {
    const ssize_t got = readlink(path.c_str(), target.data(), target.size());
    if (got < 0) {
      return FailErrno(errno, "read link '{}'", path);
    }
    const auto length = static_cast<size_t>(got);
    if (length < target.size()) {
      target.resize(length);
      return target;
    }
    target.resize(target.size() * 2);
  }
}

}  // namespace gantry
