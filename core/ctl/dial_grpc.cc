// SPDX-License-Identifier: Apache-2.0
#include "core/ctl/dial_grpc.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/unix_socket.h>

#include "core/link/paths.h"
#include "core/os/process.h"
#include "core/os/spawn.h"

namespace gantry::ctl {
namespace {

constexpr std::chrono::seconds kSpawnLimit(10);
constexpr int kDialSocket = 3;

}  // namespace

Result<UniqueFd> DialGrpc(const std::string& path) {
  // Those before it have ended with their connections.
  while (os::ReapNext().value_or(std::nullopt)) {
  }
  GANTRY_TRY(const std::string program, link::FindProgram("gantry-grpc"));
  GANTRY_TRY(auto pair, UnixSocketPair());
  os::SpawnRequest request;
  request.argv = {program, "--dial=" + path, Format("--socket-fd={}", kDialSocket)};
  request.env = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
  request.descriptors = {{pair.second.get(), kDialSocket}, {STDERR_FILENO, STDERR_FILENO}};
  request.parent_death_signal = SIGKILL;
  GANTRY_TRY([[maybe_unused]] const os::SpawnResult child, os::SpawnProcess(request, kSpawnLimit));
  return std::move(pair.first);
}

}  // namespace gantry::ctl
