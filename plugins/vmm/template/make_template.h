// SPDX-License-Identifier: Apache-2.0
//
// How a template is made: a VM is booted without what is a pod's (vsock, files, network), until its
// agent waits for its host. Then it is written down with its memory, and ended. No host has spoken
// to it, so it knows no secret.
#pragma once

#include <string>

#include <gantry/context.h>
#include <gantry/error.h>

#include "plugins/vmm/machine/machine.h"
#include "plugins/vmm/machine/means.h"
#include "plugins/vmm/template/template_store.h"

namespace gantry::vmm {

/// Its directory, for VMs to be restored from. Where it fails there is none. `request`: as `Settle`
/// leaves it, of a directory that the VM has meanwhile. The store is locked by the caller. Errors:
/// as those of a boot. Blocks: up to the options' boot timeout.
Result<std::string> MakeTemplate(SandboxContext& context, const MachineMeans& means,
                                 const MachineRequest& request, Accelerator accelerator,
                                 const TemplateStore& store, const std::string& key);

}  // namespace gantry::vmm
