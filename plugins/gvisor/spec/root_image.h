// SPDX-License-Identifier: Apache-2.0
//
// The image that annotations name as a container's root (`dev.gvisor.spec.rootfs.*`). Who writes
// annotations may be a pod's author, who has no business with the node's files: so it lies where
// the operator says that such images are, or is refused.
#pragma once

#include <string>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "plugins/gvisor/options.h"
#include "plugins/gvisor/spec/spec.h"

namespace gantry::gvisor {

/// Errors: kPermissionDenied naming annotation and option: the operator allows none, or not this
/// one; else as `OpenRegularBelow`. Thread: any.
Result<UniqueFd> OpenRootImage(const std::string& path, const Options& options);

/// Of a root by annotation: whether it could be opened. Of any other: success. Before anything is
/// made for the container. Errors: as `OpenRootImage`.
Status CheckRootImage(const Spec& spec, const Options& options);

}  // namespace gantry::gvisor
