// SPDX-License-Identifier: Apache-2.0
//
// A sandbox: one sentry. Its root is the first container, or, of a pod without a pause
// container, a program of gantry's own.
#pragma once

#include <memory>
#include <string>

#include <gantry/pod_config.h>
#include <gantry/sandbox.h>
#include <gantry/toolkit/pool/process_pool.h>

#include "plugins/gvisor/container/container_kind.h"
#include "plugins/gvisor/launch/runsc_registry.h"
#include "plugins/gvisor/pod/pod.h"

namespace gantry::gvisor {

class Launcher;
struct WarmEntry;

/// What all sandboxes share.
struct GvisorShared {
  std::shared_ptr<RunscRegistry> runscs;
  /// Null: no handler has any.
  std::shared_ptr<ProcessPool> warm;
};

/// Thread: workers, as `Sandbox`.
class GvisorSandbox : public Sandbox {
 public:
  /// `base`: the backend's options, overridden by the request's.
  static Result<std::unique_ptr<Sandbox>> Make(const SandboxRequest& request,
                                               SandboxContext& context, const Options& base,
                                               GvisorShared shared);
  /// After a restart of the engine. `blob`: what was saved, or empty.
  static Result<std::unique_ptr<Sandbox>> Recover(const SandboxRequest& request,
                                                  SandboxContext& context, const Options& base,
                                                  GvisorShared shared, const std::string& blob);

  Status Start() override;
  Status Stop(std::chrono::milliseconds limit) override;
  Status Shutdown() override;
  Result<SandboxInfo> Info() override;
  Result<std::unique_ptr<Container>> CreateContainer(const ContainerRequest& request,
                                                     ContainerContext& context) override;
  Result<std::unique_ptr<Container>> RecoverContainer(const ContainerRequest& request,
                                                      ContainerContext& context,
                                                      const std::string& blob) override;
  SandboxPlatform Platform() override;

 private:
  GvisorSandbox(SandboxRequest request, PodConfig config, std::shared_ptr<Pod> pod,
                GvisorShared shared)
      : request_(std::move(request)),
        config_(std::move(config)),
        pod_(std::move(pod)),
        shared_(std::move(shared)) {}

  static Result<std::unique_ptr<GvisorSandbox>> Build(const SandboxRequest& request,
                                                      SandboxContext& context, const Options& base,
                                                      GvisorShared shared);
  Status TakeUp(const std::string& blob);
  /// What the pod asks for and a sentry does not have is said in the log.
  void SayWhatIsIgnored();
  Status StartOwnRoot();
  Status StartCold(const Launcher& launcher);
  bool StartWarm(const Runsc& runsc, ProcessPool::Starting& starting);
  Status StartIn(const WarmEntry& entry);
  /// Of one that is to be made now.
  ContainerKind KindOfNew() const;
  /// Of one that an engine before this one has made, or had begun to.
  ContainerKind KindOfMade(const ContainerId& id, const std::string& blob) const;
  Result<std::unique_ptr<Container>> CreateSubContainer(ContainerRequest request,
                                                        ContainerContext& context);

  bool has_own_root() const { return pod_->root_kind() == ContainerKind::kOwnRoot; }

  const SandboxRequest request_;
  /// Of a pod without a pause container.
  const PodConfig config_;
  const std::shared_ptr<Pod> pod_;
  const GvisorShared shared_;
};

}  // namespace gantry::gvisor
