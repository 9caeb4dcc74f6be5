// SPDX-License-Identifier: Apache-2.0
//
// Containers that share the pod's process namespace see the holder as process 1, and
// with CAP_SYS_PTRACE they may do with it what they like. So it is nobody, nowhere.
#pragma once

namespace gantry::pause {

/// Gives up all that the process has: its root becomes an empty read-only tmpfs in a
/// mount namespace of its own, its ids nobody's, its capabilities none for good, and
/// of the kernel's calls those are left that holding needs. Nothing is open but the
/// conversation with the engine. Fails as `Fail` does.
void Confine();

}  // namespace gantry::pause
