// SPDX-License-Identifier: Apache-2.0
#include "core/link/run_dir.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string_view>

#include <gantry/format.h>

#include "core/os/unix_socket.h"

namespace gantry::link {
namespace {

bool IsTrusted(uid_t uid) { return uid == 0 || uid == geteuid(); }

/// What is looked at, for the errors.
struct Purpose {
  std::string attempt;
  std::string_view danger;
  std::string_view remedy;
};

/// `path` itself and all that lead to it.
Status CheckEach(const std::string& path, const Purpose& purpose) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    struct stat info{};
    if (lstat(part.c_str(), &info) != 0) {
      return FailErrno(errno, "{}: look at '{}'", purpose.attempt, part);
    }
    if (!IsTrusted(info.st_uid)) {
      return Fail(Code::kPermissionDenied, "{}: '{}' is owned by uid {}, who could {}: {}",
                  purpose.attempt, part, info.st_uid, purpose.danger, purpose.remedy);
    }
    const bool last = end == std::string::npos;
    const bool guarded = !last && (info.st_mode & S_ISVTX) != 0;
    if (!S_ISLNK(info.st_mode) && (info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && !guarded) {
      return Fail(Code::kPermissionDenied, "{}: others may write in '{}' (mode {:o}), and {}: {}",
                  purpose.attempt, part, info.st_mode & 07777U, purpose.danger, purpose.remedy);
    }
    if (last) {
      return {};
    }
  }
}

Status CheckPath(const std::string& path, const Purpose& purpose) {
  if (!path.starts_with('/')) {
    return Fail(Code::kInvalidArgument, "{}: not an absolute path", purpose.attempt);
  }
  GANTRY_CHECK_OK(CheckEach(path, purpose));
  const std::unique_ptr<char, void (*)(void*)> real(realpath(path.c_str(), nullptr), std::free);
  if (!real) {
    return FailErrno(errno, "{}: resolve it", purpose.attempt);
  }
  // Where links lead to.
  return real.get() == path ? Status() : CheckEach(real.get(), purpose);
}

}  // namespace

Status CheckRunDir(const std::string& dir) {
  return CheckPath(dir, {Format("use the run directory '{}'", dir), "take gantry's place",
                         "give it to root and chmod go-w it, or set GANTRY_RUN_DIR"});
}

Status CheckProgram(const std::string& path) {
  GANTRY_CHECK_OK(CheckPath(path, {Format("execute '{}'", path), "have root execute anything",
                                   "give it to root and chmod go-w it"}));
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) {
    return FailErrno(errno, "execute '{}'", path);
  }
  if (!S_ISREG(info.st_mode)) {
    return Fail(Code::kInvalidArgument, "execute '{}': it is no file", path);
  }
  return {};
}

Result<UniqueFd> ConnectIn(const std::string& dir, const std::string& name) {
  GANTRY_CHECK_OK(CheckRunDir(dir));
  GANTRY_TRY(UniqueFd socket, os::ConnectUnix(dir + "/" + name));
  GANTRY_TRY(const os::PeerCredentials peer, os::PeerOf(socket.get()));
  if (!IsTrusted(peer.uid)) {
    return Fail(Code::kPermissionDenied,
                "connect to '{}/{}': uid {} listens there, which is neither root nor this one", dir,
                name, peer.uid);
  }
  return socket;
}

}  // namespace gantry::link
