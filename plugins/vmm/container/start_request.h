// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <gantry/container.h>
#include <gantry/error.h>
#include <gantry/toolkit/oci/spec.h>

namespace gantry::vmm {

/// Starts the pod's machine for its first container, in that one's cgroups. Null: it runs.
using BootMachine =
    std::function<Status(const oci::Spec& spec, const std::vector<std::string>& cgroups)>;

/// Hooks whose programs would have to be in the guest. Errors: kFailedPrecondition, naming them.
Status CheckHooks(const InsideHooks& hooks);

/// The spec of a container that can be in a guest. Errors: as `oci::ParseSpec`, `CheckSpec`;
/// kUnimplemented: it is to be restored from a checkpoint.
Result<oci::Spec> ReadRequest(const ContainerRequest& request, bool further);

}  // namespace gantry::vmm
