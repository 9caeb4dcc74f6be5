// SPDX-License-Identifier: Apache-2.0
//
// What is kept of a machine for the engine after this one, and the VM's configuration that both
// make of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <gantry/error.h>

#include "plugins/vmm/hypervisor/accelerator.h"
#include "plugins/vmm/hypervisor/vm_config.h"
#include "plugins/vmm/machine/directory.h"
#include "plugins/vmm/machine/machine.h"

namespace gantry::vmm {

/// All that a VMM was started with and that the handler, the node or a package may have changed by
/// the time of the next engine.
struct SavedMachine {
  std::string session{};
  std::optional<uint32_t> uid{};
  uint32_t gid = 0;
  bool kvm = false;
  uint32_t vmm = 0;
  bool microvm = false;
  std::string kernel{};
  std::string initrd{};
  uint32_t cpus = 0;
  uint32_t max_cpus = 0;
  uint64_t memory_bytes = 0;
  uint64_t max_memory_bytes = 0;
  uint32_t hotplug_ports = 0;
  bool balloon = false;
  /// Of a VM that waited for its pod: it was nobody's when its processes were started, so they have
  /// no tags. 0: they have.
  int32_t vmm_pid = 0;
  uint64_t vmm_start = 0;
  int32_t vsock_pid = 0;
  uint64_t vsock_start = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.session);
    field(2, self.uid);
    field(3, self.gid);
    field(4, self.kvm);
    field(5, self.vmm);
    field(6, self.microvm);
    field(7, self.kernel);
    field(8, self.initrd);
    field(9, self.cpus);
    field(10, self.max_cpus);
    field(11, self.memory_bytes);
    field(12, self.max_memory_bytes);
    field(13, self.hotplug_ports);
    field(14, self.balloon);
    field(15, self.vmm_pid);
    field(16, self.vmm_start);
    field(17, self.vsock_pid);
    field(18, self.vsock_start);
  }
};

/// Without the session.
SavedMachine SaveRequest(const MachineRequest& request, const MachineUser& user,
                         Accelerator accelerator);
/// What was saved goes before what the options say now.
void RestoreRequest(const SavedMachine& saved, MachineRequest& request);

/// What a VM is started with, where the options leave it open: the files of its image, its
/// accelerator and what that does to its size, the places of a template. Errors: those of
/// `FindImage` and of `MachineMeans::accelerator`. Blocks: up to `deadline`.
Result<Accelerator> Settle(const MachineMeans& means, MachineRequest& request, Deadline deadline);

/// Without the devices, which are the request's to give. The options name kernel and initrd.
/// Errors: those of `KernelCommandLine`.
Result<VmConfig> ConfigOf(const MachineRequest& request, Accelerator accelerator,
                          const MachineDirectory& directory);

/// The VMM listens for the guest's streams itself, and there is no vsock device of ours.
bool IsHybrid(Vmm vmm);

}  // namespace gantry::vmm
