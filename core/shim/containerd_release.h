// SPDX-License-Identifier: Apache-2.0
//
// Which containerd has started the shim. Releases 1.7 to 2.2 start it in the same
// way, and 1.7 refuses the answer with which 2.x starts the containers of a pod
// without a shim for each.
#pragma once

#include <string>

namespace gantry::shim {

/// The major release of the containerd whose program this is, by the path of its
/// main package, which Go's linker leaves in every program. 0: it cannot be told, as
/// for a containerd inside another program.
/// Source: go.dev, src/debug/buildinfo (Go 1.18 and later).
int ContainerdMajor(const std::string& program);

}  // namespace gantry::shim
