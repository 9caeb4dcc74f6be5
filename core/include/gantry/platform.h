// SPDX-License-Identifier: Apache-2.0
//
// What containers of this machine are built for, in containerd's words.
#pragma once

#include <gantry/sandbox.h>

namespace gantry {

/// Linux on this machine's architecture by Go's name of it, for `Sandbox::Platform` of a
/// backend whose containers run on the node's processor. Thread: any. Blocks: never.
/// Source: containerd, platforms/database.go, normalizeArch.
SandboxPlatform HostPlatform();

}  // namespace gantry
