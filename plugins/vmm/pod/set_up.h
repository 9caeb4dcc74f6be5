// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gantry/error.h>
#include <gantry/pod_config.h>
#include <gantry/toolkit/oci/spec.h>

#include "plugins/vmm/container/guest_spec.h"
#include "plugins/vmm/protocol/messages.h"

namespace gantry::vmm {

/// The name and the settings that a pod's kernel is to have: of its first container, which a pause
/// container is, or of a pod without one. A pod without a name has the node's.
protocol::SetUp SetUpOf(const oci::Spec& spec);
protocol::SetUp SetUpOf(const PodConfig& config);

Limits LimitsOf(const PodResources& resources);

/// Errors: kFailedPrecondition, naming what a guest cannot have and what to do.
Status CheckPod(const PodConfig& config);

}  // namespace gantry::vmm
