// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include <gantry/sandbox.h>

#include "plugins/vmm/machine/means.h"
#include "plugins/vmm/options.h"

namespace gantry::vmm {

/// A sandbox on a machine of this node. `blob`: of one that was there before a restart of the
/// engine; null: a new one. `options`: the handler's, with those of the request. `means` outlives
/// it. Errors: as `VmmSandbox::Make` and `Recover`.
Result<std::unique_ptr<Sandbox>> MakeVmmSandbox(const SandboxRequest& request,
                                                SandboxContext& context, const VmmOptions& options,
                                                const MachineMeans& means, const std::string* blob);

}  // namespace gantry::vmm
