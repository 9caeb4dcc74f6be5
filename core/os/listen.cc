// SPDX-License-Identifier: Apache-2.0
#include "core/os/listen.h"

#include <sys/stat.h>

#include <cerrno>

#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"

namespace gantry::os {
namespace {

/// Also where its queue is full, and where it is no stream.
bool IsServed(const std::string& path) {
  const auto connected = ConnectUnix(path);
  return connected || connected.error().sys_errno != ECONNREFUSED;
}

}  // namespace

Result<UniqueFd> ListenWherePlaced(const std::string& path) {
  GANTRY_CHECK_OK(MakeDirs(path.substr(0, path.rfind('/') + 1), 0700));
  struct stat there{};
  if (lstat(path.c_str(), &there) == 0) {
    if (!S_ISSOCK(there.st_mode)) {
      return Fail(Code::kFailedPrecondition,
                  "listen at '{}': something is there that is no socket; remove it, or configure "
                  "another address",
                  path);
    }
    if (IsServed(path)) {
      return Fail(Code::kFailedPrecondition,
                  "listen at '{}': another process does; configure another address", path);
    }
    GANTRY_CHECK_OK(RemoveFile(path));
  }
  return ListenUnix(path);
}

Status RemoveLeftSocket(const std::string& path) {
  struct stat there{};
  if (lstat(path.c_str(), &there) != 0 || !S_ISSOCK(there.st_mode) || IsServed(path)) {
    return {};
  }
  return RemoveFile(path);
}

}  // namespace gantry::os
