// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gantry/error.h>
#include <gantry/host_process.h>

#include "plugins/vmm/hypervisor/qemu/qemu.h"

namespace gantry::vmm::qemu {

/// QEMU's process. `listener` is the monitor's. Owner: takes it; descriptors of the configuration
/// are duplicated. Errors: as `Hypervisor::Describe`.
Result<SpawnRequest> Arguments(const VmConfig& config, const QemuOptions& options,
                               UniqueFd listener);

}  // namespace gantry::vmm::qemu
