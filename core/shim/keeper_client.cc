// SPDX-License-Identifier: Apache-2.0
//
// Connect, and only if nobody listens take the lock and start the keeper. Under the lock it is
// tried again, as another shim may have been first. The control socket listens before the keeper
// is spawned, and the lock is let go after that; so nobody who gets the lock finds no socket. A
// keeper that is there and busy is never started a second time.
#include "core/shim/keeper_client.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <vector>

#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>

#include "core/link/paths.h"
#include "core/link/run_dir.h"
#include "core/os/fs.h"
#include "core/os/memory.h"
#include "core/os/spawn.h"

namespace gantry::shim {
namespace {

constexpr int kControlFd = 3;

/// Of this one container or call, so not for a keeper that serves all.
constexpr std::array<std::string_view, 9> kNotInherited = {
    "MAX_SHIM_VERSION=", "TTRPC_ADDRESS=", "GRPC_ADDRESS=", "NAMESPACE=",  "GOMAXPROCS=",
    "SCHED_CORE=",       "NOTIFY_SOCKET=", "LISTEN_FDS=",   "LISTEN_PID=",
};

std::vector<std::string> KeeperEnvironment() {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (std::ranges::none_of(kNotInherited, [&](auto name) { return text.starts_with(name); })) {
      all.emplace_back(text);
    }
  }
  os::AddMemoryTunables(all);
  return all;
}

std::string ControlPath(const std::string& run_dir) { return run_dir + "/" + link::kControlSocket; }

Result<UniqueFd> LockStart(const std::string& run_dir) {
  const std::string path = run_dir + "/keeper.lock";
  UniqueFd lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock) {
    return FailErrno(errno, "open '{}'", path);
  }
  while (flock(lock.get(), LOCK_EX) != 0) {
    if (errno != EINTR) {
      return FailErrno(errno, "lock '{}'", path);
    }
  }
  return lock;
}

/// Else a keeper is there and only too busy to be reached now.
bool NobodyListens(const Error& error) {
  return error.sys_errno == ENOENT || error.sys_errno == ECONNREFUSED;
}

Status StartKeeper(const std::string& run_dir) {
  GANTRY_TRY(const std::string keeper, link::FindProgram("gantry-keeper"));
  const std::string path = ControlPath(run_dir);
  GANTRY_CHECK_OK(RemoveFile(path));
  GANTRY_TRY(const UniqueFd listener, ListenUnix(path));
  os::SpawnRequest request;
  request.executable = keeper;
  request.argv = {keeper, "--run-dir", run_dir, "--control-fd", std::to_string(kControlFd)};
  request.env = KeeperEnvironment();
  request.cwd = "/";
  request.new_session = true;
  request.descriptors = {{listener.get(), kControlFd}};
  auto started = os::SpawnProcess(request);
  if (!started) {
    return std::unexpected(std::move(started).error().Within("start the keeper"));
  }
  return {};
}

}  // namespace

Result<UniqueFd> ConnectKeeper(const std::string& run_dir) {
  return link::ConnectIn(run_dir, link::kControlSocket);
}

Result<UniqueFd> EnsureKeeper(const std::string& run_dir) {
  auto connected = ConnectKeeper(run_dir);
  if (connected || !NobodyListens(connected.error())) {
    return connected;
  }
  GANTRY_CHECK_OK(os::MakeDirs(run_dir, 0700));
  GANTRY_CHECK_OK(link::CheckRunDir(run_dir));
  GANTRY_TRY(const UniqueFd lock, LockStart(run_dir));
  connected = ConnectKeeper(run_dir);
  if (connected || !NobodyListens(connected.error())) {
    return connected;
  }
  GANTRY_CHECK_OK(StartKeeper(run_dir));
  return ConnectKeeper(run_dir);
}

}  // namespace gantry::shim
