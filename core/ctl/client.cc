// SPDX-License-Identifier: Apache-2.0
//
// Two ways over the same directory: the engine's API by ttrpc on gantry's socket, and the
// keeper's messages on its control socket beside it, which works also where no engine runs.
// Each call is a connection of its own. The owner of the directory is checked before anything is
// connected to, as what listens there is believed.
#include "core/ctl/client.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include <gantry/format.h>

#include "core/ctl/operator.h"
#include "core/link/channel.h"
#include "core/link/paths.h"
#include "core/link/run_dir.h"

namespace gantry::ctl {
namespace {

// An engine that restarts is back within a second; what waits longer hangs.
constexpr auto kTimeout = std::chrono::seconds(10);
// The keeper gives a new engine ten seconds, and the old one two to leave.
constexpr auto kRestartTimeout = std::chrono::seconds(30);

Result<link::BlockingChannel> ConnectKeeper(const std::string& socket) {
  const std::string dir = RunDirOf(socket);
  auto connected = link::ConnectIn(dir, link::kControlSocket);
  if (!connected) {
    return Fail(Code::kUnavailable, "reach the keeper at '{}/{}': {}", dir, link::kControlSocket,
                connected.error().message);
  }
  return link::BlockingChannel(std::move(*connected));
}

}  // namespace

std::string RunDirOf(const std::string& socket) {
  std::error_code error;
  return std::filesystem::absolute(std::filesystem::path(socket), error).parent_path().string();
}

Result<OperatorClient> OperatorClient::Connect(const std::string& socket) {
  const Status trusted = link::CheckRunDir(RunDirOf(socket));
  if (!trusted && trusted.error().code == Code::kPermissionDenied) {
    return Fail(Code::kPermissionDenied, "reach gantry at '{}': {}", socket,
                trusted.error().message);
  }
  auto client = rpc::BlockingClient::Connect(socket);
  if (!client) {
    Error error = std::move(client).error();
    const bool denied = error.code == Code::kPermissionDenied;
    error.code = denied ? error.code : Code::kUnavailable;
    error.message = Format(
        "reach gantry at '{}': {}{}", socket, error.message,
        denied ? "; only root may" : "; it is started by the first container, or as a service");
    return std::unexpected(std::move(error));
  }
  return OperatorClient(std::move(*client));
}

Status OperatorClient::Call(const char* method, const google::protobuf::MessageLite& request,
                            google::protobuf::MessageLite& response) {
  GANTRY_TRY(const std::string bytes,
             client_.Call(kService, method, request.SerializeAsString(), kTimeout));
  if (!response.ParseFromString(bytes)) {
    return Fail(Code::kInternal, "decode the answer to '{}': malformed", method);
  }
  return {};
}

Result<v1::ListResponse> OperatorClient::List(const std::string& ns) {
  v1::ListRequest request;
  v1::ListResponse response;
  request.set_namespace_(ns);
  GANTRY_CHECK_OK(Call(kList, request, response));
  return response;
}

Result<v1::InspectResponse> OperatorClient::Inspect(const std::string& ns, const std::string& id) {
  v1::InspectRequest request;
  v1::InspectResponse response;
  request.set_namespace_(ns);
  request.set_id(id);
  GANTRY_CHECK_OK(Call(kInspect, request, response));
  return response;
}

Result<v1::StatusResponse> OperatorClient::EngineStatus() {
  v1::StatusResponse response;
  GANTRY_CHECK_OK(Call(kStatus, v1::StatusRequest(), response));
  return response;
}

Result<link::KeeperStatus> QueryKeeper(const std::string& socket) {
  GANTRY_TRY(auto channel, ConnectKeeper(socket));
  return channel.Ask<link::KeeperStatus>(link::Query(),
                                         std::chrono::steady_clock::now() + kTimeout);
}

Result<link::Upgraded> UpgradeEngine(const std::string& socket, const std::string& program,
                                     bool no_fallback) {
  GANTRY_TRY(auto channel, ConnectKeeper(socket));
  return channel.Ask<link::Upgraded>(link::Upgrade{program, no_fallback},
                                     std::chrono::steady_clock::now() + kRestartTimeout);
}

Result<link::Deleted> DeleteInstance(const std::string& socket, const link::Announce& instance) {
  GANTRY_TRY(auto channel, ConnectKeeper(socket));
  link::Delete request;
  request.id = instance.id;
  request.ns = instance.ns;
  request.bundle = instance.bundle;
  request.grpc_address = instance.grpc_address;
  return channel.Ask<link::Deleted>(request, std::chrono::steady_clock::now() + kTimeout);
}

Result<int32_t> UpgradeKeeper(const std::string& socket, const std::string& program) {
  GANTRY_TRY(auto channel, ConnectKeeper(socket));
  GANTRY_TRY(const auto done,
             channel.Ask<link::KeeperUpgraded>(link::UpgradeKeeper{program},
                                               std::chrono::steady_clock::now() + kRestartTimeout));
  return done.keeper_pid;
}

}  // namespace gantry::ctl
