// SPDX-License-Identifier: Apache-2.0
//
// The fake remote backend: a test of the plugin interface. Its sandbox is a
// process that is reached by a connection only, and the processes inside are no
// processes of the host as far as the engine can know: they have numbers of
// their own, their ends come as messages, their streams are sockets.
#pragma once

#include <memory>
#include <string>

#include <gantry/backend.h>

namespace gantry::remote {

class RemoteBackend final : public SandboxBackend {
 public:
  /// `server`: the program of the sandbox process.
  RemoteBackend(std::string server, bool unconfined)
      : server_(std::move(server)), unconfined_(unconfined) {}

  BackendInfo Describe() override;
  Result<std::unique_ptr<Sandbox>> CreateSandbox(const SandboxRequest& request,
                                                 SandboxContext& context) override;
  Result<std::unique_ptr<Sandbox>> RecoverSandbox(const SandboxRequest& request,
                                                  SandboxContext& context,
                                                  const std::string& blob) override;

 private:
  const std::string server_;
  const bool unconfined_;
};

/// `options_json` has `Server`, the path of fake-remote-sandbox, and may have `Unconfined`: what a
/// spec asks for and the sandbox cannot give is then left out, as containerd's specs need it.
Result<std::unique_ptr<SandboxBackend>> MakeBackend(const std::string& options_json);

}  // namespace gantry::remote
