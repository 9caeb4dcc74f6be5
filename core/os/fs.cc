// SPDX-License-Identifier: Apache-2.0
#include "core/os/fs.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>

#include <gantry/format.h>

namespace gantry::os {

namespace {

/// Reads up to the end. `name` is for the error.
Result<std::string> ReadAll(int fd, const std::string& name, size_t max_bytes) {
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
      return FailErrno(errno, "read '{}'", name);
    }
    if (data.size() > max_bytes) {
      return Fail(Code::kInvalidArgument, "read '{}': longer than {} bytes", name, max_bytes);
    }
    if (got == 0) {
      return data;
    }
  }
}

/// Writes all of `data`, in as few calls as the kernel allows.
Status WriteAll(int fd, const std::string& name, std::string_view data) {
  do {
    const ssize_t put = write(fd, data.data(), data.size());
    if (put < 0 && errno != EINTR) {
      return FailErrno(errno, "write '{}'", name);
    }
    data.remove_prefix(put > 0 ? static_cast<size_t>(put) : 0);
  } while (!data.empty());
  return {};
}

Status FillFile(int fd, const std::string& path, std::string_view data, mode_t mode) {
  GANTRY_CHECK_OK(WriteAll(fd, path, data));
  if (fchmod(fd, mode) < 0) {
    return FailErrno(errno, "set the mode of '{}'", path);
  }
  return {};
}

struct DirCloser {
  void operator()(DIR* dir) const { closedir(dir); }
};

using Dir = std::unique_ptr<DIR, DirCloser>;

bool IsDots(const char* name) {
  const std::string_view view = name;
  return view == "." || view == "..";
}

}  // namespace

Result<std::string> ReadFile(const std::string& path, size_t max_bytes) {
  // O_NONBLOCK: a fifo that somebody put there would hold the thread for ever.
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd) {
    return FailErrno(errno, "open '{}'", path);
  }
  return ReadAll(fd.get(), path, max_bytes);
}

Result<std::string> ReadFileAt(int dir, const std::string& name, size_t max_bytes) {
  const UniqueFd fd(
      openat(dir, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK));
  if (!fd) {
    return FailErrno(errno, "open '{}'", name);
  }
  return ReadAll(fd.get(), name, max_bytes);
}

Status WriteFile(const std::string& path, std::string_view data) {
  return WriteFileAt(AT_FDCWD, path, data);
}

Status WriteFileAt(int dir, const std::string& name, std::string_view data) {
  const UniqueFd fd(openat(dir, name.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd) {
    return FailErrno(errno, "open '{}'", name);
  }
  return WriteAll(fd.get(), name, data);
}

Status WriteFileAtomic(const std::string& path, std::string_view data, mode_t mode) {
  const std::string temporary = Format("{}.{}.tmp", path, RandomName(8));
  const UniqueFd fd(
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) {
    return FailErrno(errno, "create '{}'", temporary);
  }
  Status done = FillFile(fd.get(), temporary, data, mode);
  if (done && rename(temporary.c_str(), path.c_str()) < 0) {
    done = FailErrno(errno, "replace '{}'", path);
  }
  if (!done) {
    unlink(temporary.c_str());
  }
  return done;
}

Status MakeDirs(const std::string& path, mode_t mode) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (mkdir(part.c_str(), mode) < 0) {
      const int failed = errno;
      struct stat status{};
      // A read-only parent answers EROFS or EACCES though the directory exists.
      if (stat(part.c_str(), &status) < 0) {
        return FailErrno(failed, "make directory '{}'", part);
      }
      if (!S_ISDIR(status.st_mode)) {
        return Fail(Code::kFailedPrecondition, "make directory '{}': no directory is there", part);
      }
    }
    if (end == std::string::npos) {
      return {};
    }
  }
}

Status RemoveFile(const std::string& path) {
  if (unlink(path.c_str()) < 0 && errno != ENOENT) {
    return FailErrno(errno, "remove '{}'", path);
  }
  return {};
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

bool Exists(const std::string& path) {
  return faccessat(AT_FDCWD, path.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

Result<UniqueFd> OpenDirectory(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) {
    return FailErrno(errno, "open directory '{}'", path);
  }
  return fd;
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

Status MakeFifo(const std::string& path, mode_t mode) {
  if (mkfifo(path.c_str(), mode) < 0) {
    return FailErrno(errno, "make FIFO '{}'", path);
  }
  if (chmod(path.c_str(), mode) < 0) {
    return FailErrno(errno, "set the mode of '{}'", path);
  }
  return {};
}

Result<std::vector<std::string>> ListDirectory(const std::string& path, size_t max_entries) {
  const Dir dir(opendir(path.c_str()));
  if (!dir) {
    return FailErrno(errno, "open directory '{}'", path);
  }
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = readdir(dir.get())) {
    if (IsDots(entry->d_name)) {
      continue;
    }
    if (names.size() == max_entries) {
      return Fail(Code::kInvalidArgument, "list '{}': more than {} entries", path, max_entries);
    }
    names.emplace_back(entry->d_name);
    errno = 0;
  }
  if (errno != 0) {
    return FailErrno(errno, "list '{}'", path);
  }
  return names;
}

Result<uint64_t> RaiseOpenFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) < 0) {
    return FailErrno(errno, "get the limit of open files");
  }
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) < 0) {
    return FailErrno(errno, "set the limit of open files to {}", limit.rlim_max);
  }
  return static_cast<uint64_t>(limit.rlim_cur);
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

Result<TempDir> TempDir::Create(const std::string& prefix) {
  constexpr int kAttempts = 16;
  for (int i = 0; i < kAttempts; ++i) {
    std::string path = prefix + RandomName(10);
    if (mkdir(path.c_str(), 0700) == 0) {
      return TempDir(std::move(path));
    }
    if (errno != EEXIST) {
      return FailErrno(errno, "make directory '{}'", path);
    }
  }
  return Fail(Code::kAlreadyExists, "make directory '{}...': no free name", prefix);
}

TempDir::TempDir(TempDir&& other) noexcept : path_(std::exchange(other.path_, {})) {}

TempDir& TempDir::operator=(TempDir&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

TempDir::~TempDir() {
  if (!path_.empty()) {
    IgnoreError(RemoveTree(path_), "a destructor can tell nobody");
  }
}

}  // namespace gantry::os
