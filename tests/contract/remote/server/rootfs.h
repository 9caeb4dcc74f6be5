// SPDX-License-Identifier: Apache-2.0
//
// What a container of the fake sandbox sees: mounts, devices, its root.
#pragma once

#include <string>

#include <gantry/error.h>

#include "tests/contract/remote/message.h"

namespace gantry::remote {

/// Makes `rootfs` with the mounts of `spec` the root of this process, which
/// must be alone in its mount namespace.
Status EnterRootfs(const Json& spec, const std::string& rootfs);

}  // namespace gantry::remote
