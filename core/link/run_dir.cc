// SPDX-License-Identifier: Apache-2.0
#include "core/link/run_dir.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>

#include "core/os/unix_socket.h"

namespace gantry::link {
namespace {

bool IsTrusted(uid_t uid) { return uid == 0 || uid == geteuid(); }

/// `path` itself and all that lead to it; `dir` is for the message.
Status CheckEach(const std::string& path, const std::string& dir) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    struct stat info{};
    if (lstat(part.c_str(), &info) != 0) {
      return FailErrno(errno, "look at the run directory '{}': '{}'", dir, part);
    }
    if (!IsTrusted(info.st_uid)) {
      return Fail(Code::kPermissionDenied,
                  "use the run directory '{}': '{}' is owned by uid {}, who could take gantry's "
                  "place: give it to root, or set GANTRY_RUN_DIR",
                  dir, part, info.st_uid);
    }
    const bool last = end == std::string::npos;
    const bool guarded = !last && (info.st_mode & S_ISVTX) != 0;
    if (S_ISDIR(info.st_mode) && (info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && !guarded) {
      return Fail(Code::kPermissionDenied,
                  "use the run directory '{}': others may write in '{}' (mode {:o}), and take "
                  "gantry's place: chmod go-w it, or set GANTRY_RUN_DIR",
                  dir, part, info.st_mode & 07777U);
    }
    if (last) {
      return {};
    }
  }
}

}  // namespace

Status CheckRunDir(const std::string& dir) {
  if (!dir.starts_with('/')) {
    return Fail(Code::kInvalidArgument, "use the run directory '{}': not an absolute path", dir);
  }
  GANTRY_CHECK_OK(CheckEach(dir, dir));
  const std::unique_ptr<char, void (*)(void*)> real(realpath(dir.c_str(), nullptr), std::free);
  if (!real) {
    return FailErrno(errno, "look at the run directory '{}'", dir);
  }
  // Where links lead to.
  return real.get() == dir ? Status() : CheckEach(real.get(), dir);
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
