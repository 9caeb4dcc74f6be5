// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/pod/sandbox.h"

#include <utility>

#include <gantry/format.h>
#include <gantry/platform.h>
#include <gantry/toolkit/guest/process_end.h>
#include <gantry/toolkit/pod/pod_files.h>

#include "plugins/vmm/container/container.h"
#include "plugins/vmm/container/guest_spec.h"
#include "plugins/vmm/container/pause_container.h"
#include "plugins/vmm/pod/cgroup_limits.h"
#include "plugins/vmm/pod/set_up.h"

namespace gantry::vmm {
namespace {

/// Of an end that nobody knows. Source: containerd 2.3.4, client/task.go, UnknownExitStatus.
constexpr uint32_t kUnknownExitStatus = 255;

}  // namespace

Result<std::unique_ptr<VmmSandbox>> VmmSandbox::Build(const SandboxRequest& request,
                                                      SandboxContext& context,
                                                      std::unique_ptr<PodMachine> machine) {
  PodConfig config;
  if (request.kind == SandboxKind::kPauseless) {
    GANTRY_TRY(config, ParsePodConfig(request.pod_config));
  }
  auto pod = std::make_shared<Pod>(request.id, context, std::move(machine));
  return std::unique_ptr<VmmSandbox>(new VmmSandbox(request, std::move(config), std::move(pod)));
}

Result<std::unique_ptr<Sandbox>> VmmSandbox::Make(const SandboxRequest& request,
                                                  SandboxContext& context,
                                                  std::unique_ptr<PodMachine> machine) {
  GANTRY_TRY(auto sandbox, Build(request, context, std::move(machine)));
  if (Status can = CheckPod(sandbox->config_); !can && sandbox->is_pauseless()) {
    return std::unexpected(
        std::move(can).error().Within(Format("create sandbox '{}'", request.id.str())));
  }
  return sandbox;
}

Result<std::unique_ptr<Sandbox>> VmmSandbox::Recover(const SandboxRequest& request,
                                                     SandboxContext& context,
                                                     std::unique_ptr<PodMachine> machine,
                                                     const std::string& blob) {
  GANTRY_TRY(auto sandbox, Build(request, context, std::move(machine)));
  GANTRY_CHECK_OK(sandbox->TakeUp(blob));
  return sandbox;
}

Status VmmSandbox::TakeUp(const std::string& blob) {
  GANTRY_CHECK_OK(pod_->Recover(blob, {.cgroups = request_.cgroups,
                                       .netns_path = request_.netns_path,
                                       .limits = {},
                                       .set_up = {}}));
  if (!is_pauseless() || !pod_->is_booted()) {
    return {};
  }
  const auto process = pod_->storage() ? pod_->machine().guest().process() : nullptr;
  if (!process) {
    // It was there, it is gone, and its end is lost with whoever kept it.
    pod_->context().Exited(ExitedNow(kUnknownExitStatus));
    return {};
  }
  return pod_->context().Bind(process);
}

Status VmmSandbox::BootPod() {
  GANTRY_CHECK_OK(MakePodFiles(request_.bundle, config_));
  GANTRY_CHECK_OK(pod_->Boot("", {.cgroups = request_.cgroups,
                                  .netns_path = request_.netns_path,
                                  .limits = LimitsOf(config_.resources),
                                  .set_up = SetUpOf(config_)}));
  return pod_->context().Bind(pod_->machine().guest().process());
}

Status VmmSandbox::Start() {
  if (!is_pauseless()) {
    return {};
  }
  Status started = BootPod();
  if (!started) {
    IgnoreError(Shutdown(), "the first error counts");
  }
  return started;
}

Status VmmSandbox::Stop(std::chrono::milliseconds limit) { return pod_->Shutdown(limit); }

Status VmmSandbox::Shutdown() {
  GANTRY_CHECK_OK(pod_->Shutdown());
  return is_pauseless() ? RemovePodFiles(request_.bundle) : Status();
}

Result<SandboxInfo> VmmSandbox::Info() {
  return pod_->is_booted() ? pod_->machine().Describe() : SandboxInfo();
}

SandboxPlatform VmmSandbox::Platform() { return HostPlatform(); }

BootMachine VmmSandbox::BootFor(const ContainerRequest& request) {
  return [this, id = request.id.str()](const oci::Spec& spec,
                                       const std::vector<std::string>& cgroups) -> Status {
    PodMachineRequest wanted{.cgroups = cgroups,
                             .netns_path = request_.netns_path,
                             .limits = {},
                             .set_up = SetUpOf(spec)};
    if (request_.kind == SandboxKind::kImplied) {
      GANTRY_TRY(wanted.limits, LimitsIn(spec.resources_json));
      GANTRY_CHECK_OK(LiftContainerLimits(cgroups));
    }
    return pod_->Boot(id, std::move(wanted));
  };
}

Result<ContainerRequest> VmmSandbox::WithFiles(const ContainerRequest& request) const {
  ContainerRequest wanted = request;
  if (is_pauseless()) {
    GANTRY_TRY(wanted.spec_json, WithPodFiles(request.spec_json, request_, config_));
  }
  return wanted;
}

Result<std::unique_ptr<Container>> VmmSandbox::CreateContainer(const ContainerRequest& request,
                                                               ContainerContext& context) {
  const bool is_root = !is_pauseless() && !pod_->is_booted();
  if (is_root && request_.kind == SandboxKind::kPaused) {
    auto pause = std::make_unique<PauseContainer>(request, context, pod_);
    GANTRY_CHECK_OK(pause->Create(request, BootFor(request)));
    return pause;
  }
  auto container = std::make_unique<VmmContainer>(request, context, pod_, is_root);
  GANTRY_TRY(const ContainerRequest wanted, WithFiles(request));
  GANTRY_CHECK_OK(container->Create(wanted, is_root ? BootFor(request) : nullptr));
  return container;
}

// Without a machine on record it is the one that had begun to start it; where the record is lost
// each says itself what it is.
bool VmmSandbox::IsRoot(const ContainerRequest& request, const std::string& blob) const {
  if (is_pauseless()) {
    return false;
  }
  if (pod_->is_lost() && request_.kind == SandboxKind::kPaused) {
    return PauseContainer::IsRecord(blob);
  }
  const std::string root = pod_->record().root;
  return root.empty() || root == request.id.str();
}

Result<std::unique_ptr<Container>> VmmSandbox::RecoverContainer(const ContainerRequest& request,
                                                                ContainerContext& context,
                                                                const std::string& blob) {
  const bool is_root = IsRoot(request, blob);
  if (is_root && request_.kind == SandboxKind::kPaused) {
    auto pause = std::make_unique<PauseContainer>(request, context, pod_);
    GANTRY_CHECK_OK(pause->Recover(request, blob));
    return pause;
  }
  auto container = std::make_unique<VmmContainer>(request, context, pod_, is_root);
  GANTRY_CHECK_OK(container->Recover(request, blob));
  return container;
}

}  // namespace gantry::vmm
