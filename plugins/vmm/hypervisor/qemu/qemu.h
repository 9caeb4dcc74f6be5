// SPDX-License-Identifier: Apache-2.0
//
// A VM of QEMU: described on its command line, spoken to over its monitor (QMP).
//
// Snapshots. The state goes into DIRECTORY/state; memory stays in the file that backs it
// (x-ignore-shared) or is written along (mapped-ram). QEMU cannot take one of a VM with a
// vhost-user device, so a VM that is to be a template has neither vsock nor file systems; a VM that
// is restored gets those of its configuration when its state has been loaded.
// Source: QEMU 10.0, docs/devel/migration/mapped-ram.rst; qapi/migration.json.
#pragma once

#include <memory>
#include <string>

#include "plugins/vmm/hypervisor/accelerator.h"
#include "plugins/vmm/hypervisor/hypervisor.h"

namespace gantry::vmm {

enum class QemuMachine {
  /// A PC with PCI Express.
  kQ35,
  /// Without what a PC has of old: boots faster, and has neither CPUs nor memory that can be added.
  /// The guest needs `pcie_ports=native` (`KernelCommandLine` adds it).
  kMicrovm,
};

struct QemuOptions {
  std::string program = "/usr/bin/qemu-system-x86_64";
  QemuMachine machine = QemuMachine::kQ35;
  Accelerator accelerator = Accelerator::kTcg;
  /// Where the monitor's socket is made; nothing is there before `Describe`.
  std::string control_socket{};
  /// It gets its disks open: as whom it runs, it may not open their paths.
  bool opens_disks_for_it = false;
};

/// Errors: kInvalidArgument: the configuration; kUnimplemented: what this machine has not.
Result<std::unique_ptr<Hypervisor>> MakeQemu(VmConfig config, QemuOptions options);

}  // namespace gantry::vmm
