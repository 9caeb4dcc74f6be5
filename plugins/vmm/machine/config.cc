// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/machine/config.h"

#include <algorithm>
#include <cctype>

#include "plugins/vmm/hypervisor/kernel_command_line.h"
#include "plugins/vmm/machine/image.h"

namespace gantry::vmm {
namespace {

/// As a VM may be called.
std::string VmName(const std::string& id) {
  constexpr size_t kMost = 64;
  std::string name = id.substr(0, kMost);
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '-');
  return name.empty() ? std::string("vm") : name;
}

/// Read once: what the kernel says of a processor that saves energy differs each time, and two VMs
/// of one template are to have the same.
uint64_t TscKhz() {
  static const uint64_t khz = HostTscKhz();
  return khz;
}

Vsock VsockOf(Vmm vmm, const MachineDirectory& directory) {
  Vsock vsock;
  if (IsHybrid(vmm)) {
    vsock.uds = directory.hosts();
  } else {
    vsock.vhost_user = directory.front_end();
  }
  return vsock;
}

}  // namespace

bool IsHybrid(Vmm vmm) { return vmm != Vmm::kQemu; }

SavedMachine SaveRequest(const MachineRequest& request, const MachineUser& user,
                         Accelerator accelerator) {
  const VmmOptions& options = request.options;
  return {.uid = user.uid,
          .gid = user.gid,
          .kvm = accelerator == Accelerator::kKvm,
          .vmm = static_cast<uint32_t>(options.vmm),
          .microvm = options.machine == QemuMachine::kMicrovm,
          .kernel = options.kernel,
          .initrd = options.initrd,
          .cpus = request.size.cpus,
          .max_cpus = request.size.max_cpus,
          .memory_bytes = request.size.memory_bytes,
          .max_memory_bytes = request.size.max_memory_bytes,
          .hotplug_ports = options.hotplug_ports,
          .balloon = options.balloon};
}

void RestoreRequest(const SavedMachine& saved, MachineRequest& request) {
  VmmOptions& options = request.options;
  options.vmm = static_cast<Vmm>(std::min(saved.vmm, static_cast<uint32_t>(Vmm::kFirecracker)));
  options.machine = saved.microvm ? QemuMachine::kMicrovm : QemuMachine::kQ35;
  options.kernel = saved.kernel;
  options.initrd = saved.initrd;
  options.hotplug_ports = saved.hotplug_ports;
  options.balloon = saved.balloon;
  request.size = {.cpus = saved.cpus,
                  .max_cpus = saved.max_cpus,
                  .memory_bytes = saved.memory_bytes,
                  .max_memory_bytes = saved.max_memory_bytes};
}

Result<Accelerator> Settle(const MachineMeans& means, MachineRequest& request, Deadline deadline) {
  VmmOptions& options = request.options;
  GANTRY_TRY(const GuestImage image, FindImage(options, means.images));
  options.kernel = image.kernel;
  options.initrd = image.initrd;
  if (options.templates > 0) {
    options.hotplug_ports += kTemplatePlaces;
  }
  GANTRY_TRY(const Accelerator accelerator, means.accelerator(options, deadline));
  if (accelerator == Accelerator::kTcg) {
    // Guests take no CPUs later, but under a hypervisor that they know.
    request.size.max_cpus = request.size.cpus;
  }
  return accelerator;
}

Result<VmConfig> ConfigOf(const MachineRequest& request, Accelerator accelerator,
                          const MachineDirectory& directory) {
  const VmmOptions& options = request.options;
  const bool kvm = accelerator == Accelerator::kKvm;
  VmConfig config;
  config.id = VmName(request.id);
  config.kernel = options.kernel;
  config.initrd = options.initrd;
  GANTRY_TRY(config.cmdline,
             KernelCommandLine({.profile = kvm ? CmdlineProfile::kProduction : CmdlineProfile::kTcg,
                                .vmm = options.vmm,
                                .machine = options.machine,
                                .tsc_khz = kvm ? 0 : TscKhz(),
                                .extra = options.cmdline}));
  config.cpus = {.boot = request.size.cpus, .max = request.size.max_cpus};
  config.memory.bytes = request.size.memory_bytes;
  config.memory.max_bytes = request.size.max_memory_bytes;
  config.hotplug_ports = options.hotplug_ports;
  config.console = directory.console();
  config.balloon = options.balloon;
  config.vsock = VsockOf(options.vmm, directory);
  return config;
}

}  // namespace gantry::vmm
