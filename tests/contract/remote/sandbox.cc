// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/remote/sandbox.h"

#include <csignal>
#include <utility>

#include "tests/contract/remote/container.h"

namespace gantry::remote {
namespace {

constexpr const char* kDoor = "door";
constexpr const char* kTag = "server";
constexpr std::chrono::seconds kEndLimit{10};

}  // namespace

Status RemoteSandbox::Start() {
  // On record before there is anything, so that a restart finds what to undo.
  GANTRY_CHECK_OK(context_.Save("1"));
  GANTRY_TRY(auto pair, MakePair());
  GANTRY_CHECK_OK(context_.Store(kDoor, pair.first));
  SpawnRequest request;
  request.argv = {server_};
  request.fds.emplace_back(std::move(pair.second), kDoorFd);
  request.tag = kTag;
  Result<std::shared_ptr<HostProcess>> spawned = context_.Spawn(std::move(request));
  if (!spawned) {
    context_.Drop(kDoor);
    return std::unexpected(std::move(spawned).error().Within("start the sandbox"));
  }
  parts_->server = std::move(*spawned);
  Status connected = Connect(std::move(pair.first));
  if (connected && is_pod_) {
    connected = context_.Bind(parts_->server);
  }
  if (!connected) {
    IgnoreError(Shutdown(), "the first error counts");
  }
  return connected;
}

Status RemoteSandbox::Connect(UniqueFd door) {
  parts_->link = std::make_unique<Link>(context_, std::move(door));
  return parts_->link->Listen();
}

Status RemoteSandbox::Recover() {
  parts_->server = context_.FindSpawned(kTag);
  if (parts_->server && is_pod_) {
    GANTRY_CHECK_OK(context_.Bind(parts_->server));
  }
  Result<UniqueFd> door = context_.Take(kDoor);
  if (!door) {
    return {};  // It had not been started: nothing to find.
  }
  if (const Status connected = Connect(std::move(*door)); !connected) {
    context_.Log(LogLevel::kWarning, "the sandbox is gone: " + connected.error().message);
  }
  return {};
}

Status RemoteSandbox::Stop(std::chrono::milliseconds) { return Shutdown(); }

Result<SandboxInfo> RemoteSandbox::Info() {
  return SandboxInfo{{"server", parts_->server ? std::to_string(parts_->server->pid().value) : ""}};
}

Result<std::unique_ptr<Container>> RemoteSandbox::CreateContainer(const ContainerRequest& request,
                                                                  ContainerContext& context) {
  auto container = std::make_unique<RemoteContainer>(request.id, context, parts_);
  GANTRY_CHECK_OK(container->Create(request));
  return container;
}

Result<std::unique_ptr<Container>> RemoteSandbox::RecoverContainer(const ContainerRequest& request,
                                                                   ContainerContext& context,
                                                                   const std::string&) {
  auto container = std::make_unique<RemoteContainer>(request.id, context, parts_);
  GANTRY_CHECK_OK(container->Recover(request));
  return container;
}

Status RemoteSandbox::Shutdown() {
  if (parts_->link) {
    IgnoreError(parts_->link->Ask({{"do", "shutdown"}}), "it is killed then");
    parts_->link->Close();
  }
  Status ended;
  if (parts_->server) {
    if (!parts_->server->Wait(kEndLimit)) {
      IgnoreError(parts_->server->Signal(SIGKILL), "it may have ended just now");
      const auto end = parts_->server->Wait(kEndLimit);
      ended = end ? Status() : std::unexpected(end.error());
    }
    parts_->server.reset();
  }
  context_.Drop(kDoor);
  return ended;
}

}  // namespace gantry::remote
