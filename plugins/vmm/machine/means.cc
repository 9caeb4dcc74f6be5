// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/machine/means.h"

#include <utility>

#include "plugins/vmm/hypervisor/cloud_hypervisor/cloud_hypervisor.h"
#include "plugins/vmm/hypervisor/firecracker/firecracker.h"
#include "plugins/vmm/hypervisor/qemu/qemu.h"

namespace gantry::vmm {

Result<std::unique_ptr<Hypervisor>> MakeHypervisor(VmConfig config,
                                                   const HypervisorRequest& request) {
  const VmmOptions& options = request.options;
  switch (options.vmm) {
    case Vmm::kQemu:
      return MakeQemu(std::move(config), {.program = VmmProgram(options),
                                          .machine = options.machine,
                                          .accelerator = request.accelerator,
                                          .control_socket = request.control_socket,
                                          .opens_disks_for_it = true});
    case Vmm::kCloudHypervisor:
      return MakeCloudHypervisor(std::move(config), {.program = VmmProgram(options),
                                                     .control_socket = request.control_socket});
    case Vmm::kFirecracker:
      break;
  }
  FirecrackerOptions firecracker;
  firecracker.program = VmmProgram(options);
  firecracker.control_socket = request.control_socket;
  return MakeFirecracker(std::move(config), std::move(firecracker));
}

// What they depend on is the options' alone; the rest of the configuration is any.
Result<Traits> TraitsOf(const MachineMeans& means, const VmmOptions& options) {
  VmConfig config;
  config.id = "traits";
  config.kernel = "/kernel";
  config.initrd = "/initrd";
  config.console = "/console";
  config.hotplug_ports = options.hotplug_ports;
  GANTRY_TRY(
      const std::unique_ptr<Hypervisor> hypervisor,
      means.make_hypervisor(std::move(config), {.options = options, .control_socket = "/control"}));
  return hypervisor->traits();
}

}  // namespace gantry::vmm
