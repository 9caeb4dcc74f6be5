// SPDX-License-Identifier: Apache-2.0
#include "core/toolkit/container/program.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

#include <gantry/unique_fd.h>

namespace gantry::container {
namespace {

// Source: what runc and most shells take where there is no PATH.
constexpr std::string_view kDefaultPath =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

// The directory without magic links: those of /proc lead out of any root. None, and errno.
UniqueFd OpenDirectory(const std::string& path) {
  open_how how{};
  how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
  how.resolve = RESOLVE_NO_MAGICLINKS;
  return UniqueFd(
      static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof(how))));
}

Status CheckExecutable(const std::string& file) {
  struct stat about{};
  if (::stat(file.c_str(), &about) != 0) {
    return FailErrno(errno, "execute '{}'", file);
  }
  if (S_ISDIR(about.st_mode)) {
    return Fail(Code::kPermissionDenied, "execute '{}': it is a directory", file);
  }
  if (::faccessat(AT_FDCWD, file.c_str(), X_OK, AT_EACCESS) != 0) {
    return FailErrno(errno, "execute '{}'", file);
  }
  return {};
}

std::string PathOf(const std::vector<std::string>& env) {
  constexpr std::string_view kName = "PATH=";
  std::string path(kDefaultPath);
  for (const std::string& variable : env) {
    if (variable.starts_with(kName)) {
      path = variable.substr(kName.size());
    }
  }
  return path;
}

std::string_view FieldOf(std::string_view line, size_t number) {
  for (; number > 0; --number) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) {
      return {};
    }
    line.remove_prefix(colon + 1);
  }
  return line.substr(0, line.find(':'));
}

// A file of the container: it may be anything, of any length.
std::string ReadPasswd() {
  constexpr size_t kMost = size_t{1} << 20;
  open_how how{};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  how.resolve = RESOLVE_NO_MAGICLINKS;
  const UniqueFd fd(
      static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, "/etc/passwd", &how, sizeof(how))));
  struct stat about{};
  if (!fd || ::fstat(fd.get(), &about) != 0 || !S_ISREG(about.st_mode)) {
    return {};
  }
  std::string text(std::min(static_cast<size_t>(about.st_size), kMost), '\0');
  const ssize_t got = ::pread(fd.get(), text.data(), text.size(), 0);
  text.resize(got < 0 ? 0 : static_cast<size_t>(got));
  return text;
}

std::vector<char*> PointersTo(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) {
    pointers.push_back(text.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Status MakeWorkingDirectory(const std::string& cwd) {
  UniqueFd parent = OpenDirectory("/");
  for (size_t start = 1; start < cwd.size();) {
    const size_t end = std::min(cwd.find('/', start), cwd.size());
    const std::string path = cwd.substr(0, end);
    if (end > start) {
      UniqueFd next = OpenDirectory(path);
      const std::string name = cwd.substr(start, end - start);
      if (!next && errno == ENOENT &&
          (::mkdirat(parent.get(), name.c_str(), 0755) == 0 || errno == EEXIST)) {
        next = OpenDirectory(path);
      }
      if (!next) {
        return FailErrno(errno, "make working directory '{}'", path);
      }
      parent = std::move(next);
    }
    start = end + 1;
  }
  return {};
}

Status EnterWorkingDirectory(const std::string& cwd) {
  const UniqueFd directory = OpenDirectory(cwd);
  if (!directory) {
    return FailErrno(errno, "open working directory '{}'", cwd);
  }
  if (::fchdir(directory.get()) != 0) {
    return FailErrno(errno, "enter working directory '{}'", cwd);
  }
  // The system call: it says of a directory outside the root that it is not reachable.
  char where[PATH_MAX];
  if (::syscall(SYS_getcwd, where, sizeof(where)) < 0) {
    return FailErrno(errno, "see where working directory '{}' is", cwd);
  }
  if (where[0] != '/') {
    return Fail(Code::kPermissionDenied, "enter working directory '{}': it is outside the root",
                cwd);
  }
  return {};
}

Result<std::string> FindProgram(const oci::ProcessSpec& process) {
  const std::string& name = process.args.front();
  if (name.contains('/')) {
    GANTRY_CHECK_OK(CheckExecutable(name));
    return name;
  }
  const std::string path = PathOf(process.env);
  Status best = Fail(Code::kNotFound, "execute '{}': not found in PATH '{}'", name, path);
  for (size_t start = 0; start <= path.size();) {
    const size_t end = std::min(path.find(':', start), path.size());
    // An empty part of PATH is the working directory.
    const std::string folder = end == start ? "." : path.substr(start, end - start);
    std::string file = folder;
    file += '/';
    file += name;
    Status status = CheckExecutable(file);
    if (status) {
      return file;
    }
    if (status.error().code != Code::kNotFound && best.error().code == Code::kNotFound) {
      best = std::move(status);
    }
    start = end + 1;
  }
  return std::unexpected(std::move(best).error());
}

std::string HomeOf(uid_t uid) {
  // name:password:uid:gid:comment:home:shell. Source: passwd(5).
  constexpr size_t kUid = 2;
  constexpr size_t kHome = 5;
  const std::string wanted = std::to_string(uid);
  const std::string text = ReadPasswd();
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    const std::string line = text.substr(start, end - start);
    if (FieldOf(line, kUid) == wanted && FieldOf(line, kHome).starts_with('/')) {
      return std::string(FieldOf(line, kHome));
    }
    start = end + 1;
  }
  return "/";
}

Command::Command(std::string file, std::vector<std::string> args, std::vector<std::string> env)
    : file_(std::move(file)), args_(std::move(args)), env_(std::move(env)) {
  argv_ = PointersTo(args_);
  envp_ = PointersTo(env_);
}

Status Command::Execute() const {
  ::execve(file_.c_str(), argv_.data(), envp_.data());
  return FailErrno(errno, "execute '{}'", file_);
}

}  // namespace gantry::container
