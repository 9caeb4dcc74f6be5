// SPDX-License-Identifier: Apache-2.0
//
// A container in the guest: made, started and ended by the agent. Its files are given to the guest
// before, and its machine is made large enough for it.
//
// The first container of a sandbox without a pause container is the machine's root: the machine is
// started for it and in its cgroups, and ends with it.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include <gantry/container.h>
#include <gantry/error.h>
#include <gantry/toolkit/sync/mutex.h>

#include "plugins/vmm/container/container_record.h"
#include "plugins/vmm/container/guest_process.h"
#include "plugins/vmm/container/pod.h"
#include "plugins/vmm/container/start_request.h"

namespace gantry::vmm {

/// Thread: workers, as `Container`.
class VmmContainer : public Container {
 public:
  /// `is_root`: the machine is its own.
  VmmContainer(const ContainerRequest& request, ContainerContext& context, std::shared_ptr<Pod> pod,
               bool is_root);
  VmmContainer(const VmmContainer&) = delete;
  VmmContainer& operator=(const VmmContainer&) = delete;
  ~VmmContainer() override;

  /// On failure nothing is left.
  Status Create(const ContainerRequest& request, const BootMachine& boot);
  /// After a restart of the engine. `blob`: what was saved, or empty. Errors: kAborted: it was
  /// never finished, and what there was of it has been removed.
  Status Recover(const ContainerRequest& request, const std::string& blob);

  Result<bool> HasStarted() override { return is_started_.load(); }

  Status Start() override;
  Status Kill(uint32_t signal) override;
  Status KillAll(uint32_t signal) override;
  Status Resize(ConsoleSize size) override;
  Status Pause() override;
  Status Resume() override;
  Status Update(const std::string& resources_json) override;
  Result<ContainerMetrics> Stats() override;
  Result<std::vector<ProcessInfo>> Processes() override;
  Status Checkpoint(const CheckpointRequest& request) override;
  Result<std::unique_ptr<Process>> Exec(const ExecRequest& request,
                                        ProcessContext& context) override;
  Result<std::unique_ptr<Process>> RecoverExec(const ExecRequest& request, ProcessContext& context,
                                               bool started) override;
  Status Delete() override;

 private:
  std::string id() const { return process_.container(); }

  Status Make(const ContainerRequest& request, const oci::Spec& spec, const BootMachine& boot);
  /// Its files, and what the guest needs to have them. Gives its bundle and its spec there.
  Result<ContainerStorage> GiveFiles(const ContainerRequest& request, const oci::Spec& spec);
  Status MakeInGuest(const ContainerRequest& request, ContainerStorage files);
  void TakeFilesFromGuest();
  Status RemoveFiles();
  Status Remove();
  void TakeUp();

  const std::shared_ptr<Pod> pod_;
  ContainerContext& context_;
  const ContainerId container_id_;
  const bool is_root_;
  const std::shared_ptr<EndReport> report_;
  const std::shared_ptr<ContainerRecord> record_;
  GuestProcess process_;
  bool is_made_ = false;
  std::atomic<bool> is_started_ = false;
  /// Guards what follows.
  Mutex mutex_;
  /// What it had used when the guest was last asked: for when it cannot be any more.
  ContainerMetrics last_metrics_ GANTRY_GUARDED_BY(mutex_);
};

}  // namespace gantry::vmm
