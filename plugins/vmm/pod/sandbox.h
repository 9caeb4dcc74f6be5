// SPDX-License-Identifier: Apache-2.0
//
// A sandbox of the vmm backend: one virtual machine. For a pod without a pause container it is
// started by `Start`; else by the first container, in whose cgroups it then is: a pause container,
// which is the machine itself, or the only container of a sandbox that stands alone.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <gantry/pod_config.h>
#include <gantry/sandbox.h>

#include "plugins/vmm/container/pod.h"
#include "plugins/vmm/container/pod_machine.h"
#include "plugins/vmm/container/start_request.h"

namespace gantry::vmm {

/// Thread: workers, as `Sandbox`.
class VmmSandbox : public Sandbox {
 public:
  /// Nothing is started. Errors: kFailedPrecondition, kInvalidArgument: what it asks for cannot be.
  static Result<std::unique_ptr<Sandbox>> Make(const SandboxRequest& request,
                                               SandboxContext& context,
                                               std::unique_ptr<PodMachine> machine);
  /// After a restart of the engine. `blob`: what was saved, or empty.
  static Result<std::unique_ptr<Sandbox>> Recover(const SandboxRequest& request,
                                                  SandboxContext& context,
                                                  std::unique_ptr<PodMachine> machine,
                                                  const std::string& blob);

  Status Start() override;
  Status Stop(std::chrono::milliseconds limit) override;
  Result<SandboxInfo> Info() override;
  SandboxPlatform Platform() override;
  Result<std::unique_ptr<Container>> CreateContainer(const ContainerRequest& request,
                                                     ContainerContext& context) override;
  Result<std::unique_ptr<Container>> RecoverContainer(const ContainerRequest& request,
                                                      ContainerContext& context,
                                                      const std::string& blob) override;
  Status Shutdown() override;

 private:
  VmmSandbox(SandboxRequest request, PodConfig config, std::shared_ptr<Pod> pod)
      : request_(std::move(request)), config_(std::move(config)), pod_(std::move(pod)) {}

  static Result<std::unique_ptr<VmmSandbox>> Build(const SandboxRequest& request,
                                                   SandboxContext& context,
                                                   std::unique_ptr<PodMachine> machine);

  Status TakeUp(const std::string& blob);
  Status BootPod();
  /// Whether the machine was started for that container. `blob`: what was saved of it.
  bool IsRoot(const ContainerRequest& request, const std::string& blob) const;
  /// For its first container.
  BootMachine BootFor(const ContainerRequest& request);
  /// Errors: as `WithPodFiles`.
  Result<ContainerRequest> WithFiles(const ContainerRequest& request) const;

  bool is_pauseless() const { return request_.kind == SandboxKind::kPauseless; }

  const SandboxRequest request_;
  /// Of a pod without a pause container.
  const PodConfig config_;
  const std::shared_ptr<Pod> pod_;
};

}  // namespace gantry::vmm
