// SPDX-License-Identifier: Apache-2.0
//
// By ttrpc there are two ways over the same directory: the engine's API on gantry's socket, and the
// keeper's messages on its control socket beside it. By gRPC all goes through gantry-grpc, of which
// another one, started here, is the client: gRPC's library is in no other program. The owner of
// what is connected to is checked before, as what listens there is believed.
#include "core/ctl/client.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/unix_socket.h>

#include "core/ctl/dial_grpc.h"
#include "core/link/keeper_calls.h"
#include "core/link/operator_api.h"
#include "core/link/paths.h"
#include "core/link/run_dir.h"

namespace gantry::ctl {
namespace {

// An engine that restarts is back within a second; what waits longer hangs.
constexpr std::chrono::seconds kTimeout(10);
constexpr std::chrono::seconds kRestartTimeout(40);

/// What a path of a socket lies in.
std::string FolderOf(const std::string& path) {
  std::error_code error;
  return std::filesystem::absolute(std::filesystem::path(path), error).parent_path().string();
}

/// Errors: kPermissionDenied.
Status CheckTrusted(const Address& address) {
  if (address.protocol == Address::Protocol::kTtrpc) {
    const Status trusted = link::CheckRunDir(FolderOf(address.path));
    return !trusted && trusted.error().code == Code::kPermissionDenied ? trusted : Status();
  }
  // Anywhere, as the configuration says.
  struct stat there{};
  if (stat(address.path.c_str(), &there) == 0 && there.st_uid != 0 && there.st_uid != geteuid()) {
    return Fail(Code::kPermissionDenied, "the socket is of user {}, who is not trusted",
                there.st_uid);
  }
  return {};
}

Error Unreachable(const Address& address, Error error) {
  const bool denied = error.code == Code::kPermissionDenied;
  const char* const why = denied ? "; only root may"
                          : address.protocol == Address::Protocol::kGrpc
                              ? "; it is where grpc.address of gantry.yaml says, once gantry runs"
                              : "; it is started by the first container, or as a service";
  error.code = denied ? error.code : Code::kUnavailable;
  error.message = Format("reach gantry at '{}': {}{}", address.path, error.message, why);
  return error;
}

}  // namespace

std::string RunDirOf(const std::string& text) {
  const auto address = ParseAddress(text);
  return address && address->protocol == Address::Protocol::kTtrpc ? FolderOf(address->path)
                                                                   : link::RunDir();
}

Result<OperatorClient> OperatorClient::Connect(const std::string& text) {
  GANTRY_TRY(const Address address, ParseAddress(text));
  if (const Status trusted = CheckTrusted(address); !trusted) {
    return Fail(Code::kPermissionDenied, "reach gantry at '{}': {}", address.path,
                trusted.error().message);
  }
  auto connected = ConnectUnix(address.path);
  if (!connected) {
    return std::unexpected(Unreachable(address, std::move(connected).error()));
  }
  if (address.protocol == Address::Protocol::kGrpc) {
    GANTRY_TRY(connected, DialGrpc(address.path));
  }
  return OperatorClient(rpc::BlockingClient(std::move(*connected)));
}

Status OperatorClient::Call(const char* method, const google::protobuf::MessageLite& request,
                            google::protobuf::MessageLite& response,
                            std::chrono::nanoseconds timeout) {
  GANTRY_TRY(const std::string bytes,
             client_.Call(operator_api::kService, method, request.SerializeAsString(), timeout));
  if (!response.ParseFromString(bytes)) {
    return Fail(Code::kInternal, "decode the answer to '{}': malformed", method);
  }
  return {};
}

Result<v1::ListResponse> OperatorClient::List(const std::string& ns) {
  v1::ListRequest request;
  v1::ListResponse response;
  request.set_namespace_(ns);
  GANTRY_CHECK_OK(Call(operator_api::kList, request, response, kTimeout));
  return response;
}

Result<v1::ListResponse> OperatorClient::ListUse(const std::string& ns) {
  v1::ListRequest request;
  v1::ListResponse response;
  request.set_namespace_(ns);
  request.set_usage(true);
  GANTRY_CHECK_OK(Call(operator_api::kList, request, response, kTimeout));
  return response;
}

Result<v1::InspectResponse> OperatorClient::Inspect(const std::string& ns, const std::string& id) {
  v1::InspectRequest request;
  v1::InspectResponse response;
  request.set_namespace_(ns);
  request.set_id(id);
  GANTRY_CHECK_OK(Call(operator_api::kInspect, request, response, kTimeout));
  return response;
}

Result<v1::StatusResponse> OperatorClient::EngineStatus() {
  v1::StatusResponse response;
  GANTRY_CHECK_OK(Call(operator_api::kStatus, v1::StatusRequest(), response, kTimeout));
  return response;
}

Result<v1::EventsResponse> OperatorClient::Events(const v1::EventsRequest& request) {
  v1::EventsResponse response;
  // It waits anew where the engine ends meanwhile.
  GANTRY_CHECK_OK(Call(operator_api::kEvents, request, response,
                       kTimeout + 2 * std::chrono::milliseconds(request.wait_ms())));
  return response;
}

namespace {

/// The keeper asked through gantry-grpc.
template <class Response>
Result<Response> AskByGrpc(const std::string& address, const char* method,
                           const google::protobuf::MessageLite& request,
                           std::chrono::seconds timeout) {
  GANTRY_TRY(OperatorClient client, OperatorClient::Connect(address));
  Response response;
  GANTRY_CHECK_OK(client.Call(method, request, response, timeout));
  return response;
}

}  // namespace

Result<link::KeeperStatus> QueryKeeper(const std::string& text) {
  GANTRY_TRY(const Address address, ParseAddress(text));
  if (address.protocol == Address::Protocol::kTtrpc) {
    return link::KeeperCalls(FolderOf(address.path)).Query();
  }
  GANTRY_TRY(const auto response, AskByGrpc<v1::KeeperResponse>(text, operator_api::kKeeper,
                                                                v1::KeeperRequest(), kTimeout));
  return link::FromMessage(response);
}

Result<link::Upgraded> UpgradeEngine(const std::string& text, const std::string& program,
                                     bool no_fallback) {
  GANTRY_TRY(const Address address, ParseAddress(text));
  if (address.protocol == Address::Protocol::kTtrpc) {
    return link::KeeperCalls(FolderOf(address.path)).UpgradeEngine({program, no_fallback});
  }
  v1::UpgradeEngineRequest request;
  request.set_program(program);
  request.set_no_fallback(no_fallback);
  GANTRY_TRY(const auto response,
             AskByGrpc<v1::UpgradeEngineResponse>(text, operator_api::kUpgradeEngine, request,
                                                  kRestartTimeout));
  return link::Upgraded{static_cast<int32_t>(response.engine_pid()), response.fallback()};
}

Result<link::Deleted> DeleteInstance(const std::string& text, const link::Announce& instance) {
  GANTRY_TRY(const Address address, ParseAddress(text));
  if (address.protocol == Address::Protocol::kTtrpc) {
    return link::KeeperCalls(FolderOf(address.path))
        .Delete({instance.id, instance.ns, instance.bundle, instance.grpc_address});
  }
  v1::DeleteRequest request;
  request.set_namespace_(instance.ns);
  request.set_id(instance.id);
  request.set_bundle(instance.bundle);
  request.set_containerd(instance.grpc_address);
  GANTRY_TRY(const auto response,
             AskByGrpc<v1::DeleteResponse>(text, operator_api::kDelete, request, kTimeout));
  link::Deleted deleted;
  deleted.status = response.exit_status();
  deleted.known = true;
  return deleted;
}

Result<int32_t> UpgradeKeeper(const std::string& text, const std::string& program) {
  GANTRY_TRY(const Address address, ParseAddress(text));
  if (address.protocol == Address::Protocol::kTtrpc) {
    return link::KeeperCalls(FolderOf(address.path)).UpgradeKeeper(program);
  }
  v1::UpgradeKeeperRequest request;
  request.set_program(program);
  GANTRY_TRY(const auto response,
             AskByGrpc<v1::UpgradeKeeperResponse>(text, operator_api::kUpgradeKeeper, request,
                                                  kRestartTimeout));
  return static_cast<int32_t>(response.keeper_pid());
}

}  // namespace gantry::ctl
