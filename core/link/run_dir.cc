// SPDX-License-Identifier: Apache-2.0
//
// Whether a directory or program may be believed: only if nobody but root (or this user) could
// have put it there. Each part of the path is checked, and then each part of what its links lead
// to, since whoever may write in one of them could put something else in its place.
#include "core/link/run_dir.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string_view>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/unix_socket.h>

namespace gantry::link {
namespace {

bool IsTrusted(uid_t uid) { return uid == 0 || uid == geteuid(); }

/// What is looked at, for the errors.
struct Purpose {
  std::string attempt;
  std::string_view danger;
  std::string_view remedy;
};

/// Of `part`. A directory with the sticky bit may be written by all where it is `above` others.
Status CheckOwner(const struct stat& info, const std::string& part, bool above,
                  const Purpose& purpose) {
  if (!IsTrusted(info.st_uid)) {
    return Fail(Code::kPermissionDenied, "{}: '{}' is owned by uid {}, who could {}: {}",
                purpose.attempt, part, info.st_uid, purpose.danger, purpose.remedy);
  }
  const bool guarded = above && (info.st_mode & S_ISVTX) != 0;
  if (!S_ISLNK(info.st_mode) && (info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && !guarded) {
    return Fail(Code::kPermissionDenied, "{}: others may write in '{}' (mode {:o}), and {}: {}",
                purpose.attempt, part, info.st_mode & 07777U, purpose.danger, purpose.remedy);
  }
  return {};
}

Status CheckOne(const std::string& part, bool above, const Purpose& purpose) {
  struct stat info{};
  if (lstat(part.c_str(), &info) != 0) {
    return FailErrno(errno, "{}: look at '{}'", purpose.attempt, part);
  }
  return CheckOwner(info, part, above, purpose);
}

/// `path` itself and all that lead to it.
Status CheckEach(const std::string& path, const Purpose& purpose) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const bool last = end == std::string::npos;
    GANTRY_CHECK_OK(CheckOne(path.substr(0, end), !last, purpose));
    if (last) {
      return {};
    }
  }
}

/// Without links, absolute.
Result<std::string> Resolve(const std::string& path, const Purpose& purpose) {
  if (!path.starts_with('/')) {
    return Fail(Code::kInvalidArgument, "{}: not an absolute path", purpose.attempt);
  }
  const std::unique_ptr<char, void (*)(void*)> real(realpath(path.c_str(), nullptr), std::free);
  if (!real) {
    return FailErrno(errno, "{}: resolve it", purpose.attempt);
  }
  return std::string(real.get());
}

}  // namespace

Status CheckRunDir(const std::string& dir) {
  const Purpose purpose{Format("use the run directory '{}'", dir), "take gantry's place",
                        "give it to root and chmod go-w it, or set GANTRY_RUN_DIR"};
  GANTRY_TRY(const std::string real, Resolve(dir, purpose));
  GANTRY_CHECK_OK(CheckEach(dir, purpose));
  // Where links lead to.
  return real == dir ? Status() : CheckEach(real, purpose);
}

Result<UniqueFd> OpenProgram(const std::string& path) {
  const Purpose purpose{Format("execute '{}'", path), "have root execute anything",
                        "give it to root and chmod go-w it"};
  GANTRY_TRY(const std::string real, Resolve(path, purpose));
  UniqueFd program(open(real.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  struct stat info{};
  if (!program || fstat(program.get(), &info) != 0) {
    return FailErrno(errno, "execute '{}'", path);
  }
  GANTRY_CHECK_OK(CheckOne(real.substr(0, std::max<size_t>(real.rfind('/'), 1)), true, purpose));
  GANTRY_CHECK_OK(CheckOwner(info, real, false, purpose));
  if (!S_ISREG(info.st_mode)) {
    return Fail(Code::kInvalidArgument, "execute '{}': it is no file", path);
  }
  return program;
}

Status CheckProgram(const std::string& path) {
  GANTRY_TRY([[maybe_unused]] const UniqueFd program, OpenProgram(path));
  return {};
}

Result<UniqueFd> ConnectIn(const std::string& dir, const std::string& name) {
  GANTRY_CHECK_OK(CheckRunDir(dir));
  GANTRY_TRY(UniqueFd socket, ConnectUnix(dir + "/" + name));
  GANTRY_TRY(const PeerCredentials peer, PeerOf(socket.get()));
  if (!IsTrusted(peer.uid)) {
    return Fail(Code::kPermissionDenied,
                "connect to '{}/{}': uid {} listens there, which is neither root nor this one", dir,
                name, peer.uid);
  }
  return socket;
}

}  // namespace gantry::link
