// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/pod/make_sandbox.h"

#include <utility>

#include "plugins/vmm/pod/node_pod_machine.h"
#include "plugins/vmm/pod/sandbox.h"

namespace gantry::vmm {

Result<std::unique_ptr<Sandbox>> MakeVmmSandbox(const SandboxRequest& request,
                                                SandboxContext& context, const VmmOptions& options,
                                                const MachineMeans& means,
                                                const std::string* blob) {
  auto machine = std::make_unique<NodePodMachine>(request, context, options, means);
  return blob == nullptr ? VmmSandbox::Make(request, context, std::move(machine))
                         : VmmSandbox::Recover(request, context, std::move(machine), *blob);
}

}  // namespace gantry::vmm
