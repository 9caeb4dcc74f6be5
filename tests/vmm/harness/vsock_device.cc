// SPDX-License-Identifier: Apache-2.0
#include "tests/vmm/harness/vsock_device.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/pipe.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/backoff.h>
#include <gantry/toolkit/process/spawn_builder.h>

#include "tests/vmm/harness/socket_io.h"

namespace gantry::vmm {
namespace {

constexpr const char* kPeer = "GANTRY_VMM_VHOST_DEVICE_VSOCK";
constexpr const char* kLog = "/vsock.log";
constexpr const char* kFront = "/front";
constexpr const char* kHosts = "/v";

std::string Setting(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// The build's, unless somebody chooses another build's.
std::string OurProgram() {
  const std::string chosen = Setting("GANTRY_VSOCK_DEVICE");
  return chosen.empty() ? GANTRY_VSOCK : chosen;
}

Result<std::shared_ptr<HostProcess>> Spawn(FakeSandboxContext& context, SpawnBuilder child,
                                           const std::string& program, const std::string& log) {
  const UniqueFd file(open(program.c_str(), O_PATH | O_CLOEXEC));
  if (!file) {
    return FailErrno(errno, "open '{}'", program);
  }
  GANTRY_TRY(SpawnRequest request, child.Finish(program, file));
  for (const int number : {STDOUT_FILENO, STDERR_FILENO}) {
    UniqueFd said(open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (!said) {
      return FailErrno(errno, "open '{}'", log);
    }
    request.fds.emplace_back(std::move(said), number);
  }
  return context.Spawn(std::move(request));
}

}  // namespace

std::string WhyNoPeer() {
  return access(Setting(kPeer).c_str(), X_OK) == 0
             ? ""
             : Format("no vhost-device-vsock: {} is to name one, as `cargo install` makes it",
                      kPeer);
}

Result<VsockDevice> VsockDevice::Start(FakeSandboxContext& context, const std::string& folder,
                                       VsockProgram program, Deadline deadline) {
  VsockDevice device(folder);
  SpawnBuilder child;
  if (program == VsockProgram::kOurs) {
    GANTRY_TRY(UniqueFd front_end, ListenUnix(folder + kFront));
    GANTRY_TRY(UniqueFd hosts, ListenUnix(folder + kHosts));
    child.AddFd("front-end", std::move(front_end));
    child.AddFd("hosts", std::move(hosts));
    child.AddFd("directory", UniqueFd(open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)));
    child.Add("--name=v");
    child.Add("--guest-cid=3");
    GANTRY_TRY(device.process_, Spawn(context, std::move(child), OurProgram(), folder + kLog));
    return device;
  }
  child.Add({"--vm", Format("guest-cid=3,socket={0}{1},uds-path={0}{2}", folder, kFront, kHosts)});
  GANTRY_TRY(device.process_, Spawn(context, std::move(child), Setting(kPeer), folder + kLog));
  Backoff backoff({.no_event = "its socket is a file that it makes when it is ready",
                   .first = std::chrono::milliseconds(1),
                   .longest = std::chrono::milliseconds(20)});
  while (!Exists(folder + kFront)) {
    if (device.process_->Ended() || !backoff.Sleep(deadline)) {
      return Fail(Code::kUnavailable, "start '{}': {}", Setting(kPeer), device.Log());
    }
  }
  return device;
}

Vsock VsockDevice::Config() const {
  Vsock vsock;
  vsock.vhost_user = folder_ + kFront;
  return vsock;
}

Result<UniqueFd> VsockDevice::Listen(uint32_t port) const {
  return ListenUnix(Format("{}{}_{}", folder_, kHosts, port));
}

UniqueFd VsockDevice::BeginToDial(uint32_t port) const {
  auto socket = ConnectUnix(folder_ + kHosts);
  if (!socket || !WriteTo(socket->get(), Format("CONNECT {}\n", port))) {
    return {};
  }
  return std::move(*socket);
}

Result<UniqueFd> VsockDevice::Dial(uint32_t port) const {
  UniqueFd socket = BeginToDial(port);
  if (!socket) {
    return Fail(Code::kUnavailable, "dial port {} of the guest", port);
  }
  std::string answer;
  while (!answer.ends_with('\n')) {
    GANTRY_TRY(const std::string one, ReadFrom(socket.get(), 1));
    answer += one;
  }
  GANTRY_CHECK_OK(SetNonblocking(socket.get(), false));
  return socket;
}

std::string VsockDevice::Log() const { return ReadTail(folder_ + kLog, 4000).value_or(""); }

}  // namespace gantry::vmm
