// SPDX-License-Identifier: Apache-2.0
//
// What a pod stands on, on a node: a `Machine`, the `Storage` that gives it files, the `Network`
// that CNI has made for the pod, and the ports that are forwarded into it. They are made in the
// order network, storage, machine, ports; the machine ends first. Without its files it ends, too.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <gantry/context.h>
#include <gantry/sandbox.h>
#include <gantry/toolkit/forward/port_forward.h>
#include <gantry/toolkit/sync/mutex.h>

#include "plugins/vmm/container/pod_machine.h"
#include "plugins/vmm/machine/machine.h"
#include "plugins/vmm/machine/means.h"
#include "plugins/vmm/network/network.h"
#include "plugins/vmm/options.h"

namespace gantry::vmm {

/// Thread: as `PodMachine`.
class NodePodMachine final : public PodMachine {
 public:
  /// `context` and `means` outlive it.
  NodePodMachine(const SandboxRequest& request, SandboxContext& context, VmmOptions options,
                 const MachineMeans& means);

  Status Start(PodMachineRequest request, PodMachineEvents events, Deadline deadline) override;
  Status Recover(const PodMachineRequest& request, const std::string& saved,
                 PodMachineEvents events, Deadline deadline) override;
  std::string Save() const override;

  GuestCalls& guest() override { return *machine_; }

  Storage& storage() override { return *storage_; }

  std::optional<Error> ended() const override;
  std::map<std::string, std::string> Describe() const override;
  Status AddDisk(const Disk& disk, Deadline deadline) override;
  Status RemoveDisk(const std::string& serial, Deadline deadline) override;
  Status MakeRoom(const std::string& container, const Limits& limits, Deadline deadline) override;
  void KnowRoom(const std::string& container, const Limits& limits) override;
  Status GiveRoomBack(const std::string& container, Deadline deadline) override;
  Status Shutdown(std::chrono::milliseconds limit) override;

 private:
  MachineRequest RequestOf(const PodMachineRequest& request) const;
  StorageRequest StorageRequestOf(const PodMachineRequest& request, Traits traits);
  Result<NetworkRequest> NetworkRequestOf(const std::string& netns, const Traits& traits) const;
  Status StartParts(PodMachineRequest request, PodMachineEvents events, Deadline deadline);
  Status RecoverParts(const PodMachineRequest& request, const std::string& saved,
                      PodMachineEvents events);
  /// Nothing is left of it, and nothing of it is told any more.
  Status LetGo();
  /// The machine's own, and the network is there. Empty: it was never saved, or cannot be read any
  /// more; then what there is of machine and files is found by its tags, and ends.
  std::string ReadSaved(const std::string& saved);
  /// Without its files a guest is of no use to anybody.
  void OnFilesGone(const Error& why);
  void ForwardItsPorts(const Network& network, const std::vector<std::string>& cgroups);

  const std::string id_;
  SandboxContext& context_;
  const VmmOptions options_;
  const MachineMeans& means_;
  const std::string directory_;

  /// One shutdown at a time.
  std::mutex shutting_down_;
  std::atomic<bool> is_down_ = false;
  /// Guards what follows.
  Mutex mutex_;
  /// The VMM, once it runs.
  std::shared_ptr<HostProcess> vmm_ GANTRY_GUARDED_BY(mutex_);
  std::optional<Error> files_gone_ GANTRY_GUARDED_BY(mutex_);

  std::optional<Network> network_;
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<Machine> machine_;
  /// Null: none are forwarded.
  std::shared_ptr<forward::PortForward> forward_;
};

}  // namespace gantry::vmm
