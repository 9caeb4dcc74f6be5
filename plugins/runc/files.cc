// SPDX-License-Identifier: Apache-2.0
#include "plugins/runc/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>

#include <gantry/format.h>

namespace gantry::runc {
namespace {

/// Source: Linux 6.9, include/uapi/linux/pidfd.h; older headers lack it.
constexpr unsigned kPidfdSignalProcessGroup = 1U << 2;

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

Status RemoveAt(int parent, const std::string& name, const std::string& shown) {
  if (unlinkat(parent, name.c_str(), 0) == 0 || errno == ENOENT) {
    return {};
  }
  if (errno != EISDIR && errno != EPERM) {
    return FailErrno(errno, "remove '{}'", shown);
  }
  UniqueFd fd(openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) {
    return FailErrno(errno, "open '{}'", shown);
  }
  const Directory dir(fdopendir(fd.get()));
  if (!dir) {
    return FailErrno(errno, "open '{}'", shown);
  }
  const int inner = fd.release();
  for (const std::string& child : NamesIn(dir.get())) {
    GANTRY_CHECK_OK(RemoveAt(inner, child, Format("{}/{}", shown, child)));
  }
  if (unlinkat(parent, name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) {
    return FailErrno(errno, "remove '{}'", shown);
  }
  return {};
}

}  // namespace

std::chrono::milliseconds Left(Deadline deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return std::max(left, std::chrono::milliseconds(0));
}

int PollTimeout(Deadline deadline) {
  constexpr int64_t kLongest = 1'000'000'000;
  return static_cast<int>(std::min<int64_t>(Left(deadline).count(), kLongest));
}

Result<std::string> ReadFile(const std::string& path, size_t max_bytes) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd) {
    return FailErrno(errno, "open '{}'", path);
  }
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

Status RemoveTree(const std::string& path) { return RemoveAt(AT_FDCWD, path, path); }

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

Result<int64_t> ParseNumber(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    return Fail(Code::kInvalidArgument, "read a number: '{}' is none", text.substr(0, 40));
  }
  return value;
}

Result<uint64_t> StartTimeOf(HostPid pid) {
  GANTRY_TRY(const std::string stat, ReadFile(Format("/proc/{}/stat", pid.value), 4096));
  // The second field is the program's name in brackets, with any character in
  // it; the fields after it are counted from 3.
  size_t at = stat.rfind(')');
  for (int field = 2; field < 22 && at != std::string::npos; ++field) {
    at = stat.find(' ', at + 1);
  }
  if (at == std::string::npos) {
    return Fail(Code::kInternal, "read '/proc/{}/stat': too short", pid.value);
  }
  const size_t end = stat.find(' ', at + 1);
  GANTRY_TRY(const int64_t ticks, ParseNumber(std::string_view(stat).substr(at + 1, end - at - 1)));
  return static_cast<uint64_t>(ticks);
}

Result<UniqueFd> OpenPidfd(HostPid pid) {
  UniqueFd fd(static_cast<int>(syscall(SYS_pidfd_open, pid.value, 0)));
  if (!fd) {
    return FailErrno(errno, "open process '{}'", pid.value);
  }
  return fd;
}

void SignalProcess(const UniqueFd& pidfd, int signal) {
  // It fails only for a process that has ended.
  syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0);
}

void KillProcess(const UniqueFd& pidfd) { SignalProcess(pidfd, SIGKILL); }

void KillGroup(const UniqueFd& pidfd) {
  // An older kernel refuses the flag; then the process itself has to do.
  if (syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, kPidfdSignalProcessGroup) !=
      0) {
    KillProcess(pidfd);
  }
}

}  // namespace gantry::runc
