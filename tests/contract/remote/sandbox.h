// SPDX-License-Identifier: Apache-2.0
//
// One sandbox process and the way to it.
#pragma once

#include <memory>
#include <string>

#include <gantry/sandbox.h>

#include "tests/contract/remote/link.h"

namespace gantry::remote {

/// What a sandbox shares with its containers, which may outlive its object.
struct SandboxParts {
  std::unique_ptr<Link> link;
  std::shared_ptr<HostProcess> server;
  /// Specs may ask for more than there is.
  bool unconfined = false;
};

class RemoteSandbox final : public Sandbox {
 public:
  RemoteSandbox(std::string server, SandboxKind kind, SandboxContext& context, bool unconfined)
      : server_(std::move(server)),
        is_pod_(kind == SandboxKind::kPauseless),
        context_(context),
        parts_(std::make_shared<SandboxParts>()) {
    parts_->unconfined = unconfined;
  }

  Status Start() override;
  Status Recover();
  Status Stop(std::chrono::milliseconds limit) override;
  Result<SandboxInfo> Info() override;
  Result<std::unique_ptr<Container>> CreateContainer(const ContainerRequest& request,
                                                     ContainerContext& context) override;
  Result<std::unique_ptr<Container>> RecoverContainer(const ContainerRequest& request,
                                                      ContainerContext& context,
                                                      const std::string& blob) override;
  Status Shutdown() override;

 private:
  Status Connect(UniqueFd door);

  const std::string server_;
  const bool is_pod_;
  SandboxContext& context_;
  const std::shared_ptr<SandboxParts> parts_;
};

}  // namespace gantry::remote
