// SPDX-License-Identifier: Apache-2.0
//
// A pod's pause container: the machine itself, which is started for it and in its cgroups. What a
// pause process is for elsewhere, to hold the pod's namespaces, the guest does by being there; so
// there is no such process in it, and no files of its image are needed.
//
// What the core does by cgroups (statistics, limits, standing still) it does to the machine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gantry/container.h>
#include <gantry/error.h>

#include "plugins/vmm/container/pod.h"
#include "plugins/vmm/container/start_request.h"

namespace gantry::vmm {

/// Thread: workers, as `Container`.
class PauseContainer : public Container {
 public:
  PauseContainer(const ContainerRequest& request, ContainerContext& context,
                 std::shared_ptr<Pod> pod);
  PauseContainer(const PauseContainer&) = delete;
  PauseContainer& operator=(const PauseContainer&) = delete;
  ~PauseContainer() override;

  /// On failure nothing is left.
  Status Create(const ContainerRequest& request, const BootMachine& boot);
  /// After a restart of the engine. `blob`: what was saved, or empty. Errors: kAborted: it was
  /// never finished, and what there was of it has been removed.
  Status Recover(const ContainerRequest& request, const std::string& blob);
  /// What was saved is a pause container's.
  static bool IsRecord(const std::string& blob);

  Status Start() override;
  /// There is nobody who could handle a signal: what ends a process by default ends it.
  Status Kill(uint32_t signal) override;

  Status KillAll(uint32_t signal) override { return Kill(signal); }

  Result<std::vector<ProcessInfo>> Processes() override;
  Status Checkpoint(const CheckpointRequest& request) override;
  Result<std::unique_ptr<Process>> Exec(const ExecRequest& request,
                                        ProcessContext& context) override;
  Status Delete() override;

 private:
  Status Make(const oci::Spec& spec, const BootMachine& boot);

  const std::shared_ptr<Pod> pod_;
  ContainerContext& context_;
  const std::string id_;
  const std::shared_ptr<EndReport> report_;
  bool is_made_ = false;
};

}  // namespace gantry::vmm
