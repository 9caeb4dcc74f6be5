// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/remote/backend.h"

#include <unistd.h>

#include <utility>

#include "tests/contract/remote/message.h"
#include "tests/contract/remote/sandbox.h"

namespace gantry::remote {

BackendInfo RemoteBackend::Describe() {
  BackendInfo info;
  info.name = "remote";
  info.version = "0.1.0";
  info.pauseless_pods = true;
  info.needs.push_back({"the sandbox program", access(server_.c_str(), X_OK) == 0, false, server_});
  return info;
}

Result<std::unique_ptr<Sandbox>> RemoteBackend::CreateSandbox(const SandboxRequest& request,
                                                              SandboxContext& context) {
  return std::make_unique<RemoteSandbox>(server_, request.kind, context, unconfined_);
}

Result<std::unique_ptr<Sandbox>> RemoteBackend::RecoverSandbox(const SandboxRequest& request,
                                                               SandboxContext& context,
                                                               const std::string&) {
  auto sandbox = std::make_unique<RemoteSandbox>(server_, request.kind, context, unconfined_);
  GANTRY_CHECK_OK(sandbox->Recover());
  return sandbox;
}

Result<std::unique_ptr<SandboxBackend>> MakeBackend(const std::string& options_json) {
  const Json options = Json::parse(options_json, nullptr, false);
  if (!options.is_object() || !options.contains("Server") || !options["Server"].is_string()) {
    return Fail(Code::kInvalidArgument, "read the options of 'remote': Server: missing");
  }
  return std::make_unique<RemoteBackend>(options["Server"].get<std::string>(),
                                         options.value("Unconfined", false));
}

}  // namespace gantry::remote
