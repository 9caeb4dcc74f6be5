// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/container/start_request.h"

#include "plugins/vmm/container/guest_spec.h"

namespace gantry::vmm {

Status CheckHooks(const InsideHooks& hooks) {
  if (hooks.create_container) {
    return Fail(Code::kFailedPrecondition,
                "'hooks.createContainer': not in a virtual machine: the programs of the node are "
                "not there; use createRuntime, which runs on the node, or startContainer, whose "
                "program is in the container");
  }
  return {};
}

Result<oci::Spec> ReadRequest(const ContainerRequest& request, bool further) {
  if (!request.checkpoint.empty()) {
    return Fail(Code::kUnimplemented, "restore a checkpoint: not in a virtual machine");
  }
  GANTRY_TRY(oci::Spec spec, oci::ParseSpec(request.spec_json, "config.json"));
  GANTRY_CHECK_OK(CheckSpec(spec, further));
  return spec;
}

}  // namespace gantry::vmm
