// SPDX-License-Identifier: Apache-2.0
//
// For whom a module is compiled.
#pragma once

#include <string>

namespace gantry::wasm {

struct Asker {
  /// containerd's namespace and, of a pod, that of Kubernetes.
  std::string tenant;
  /// The pod, or the container that is alone.
  std::string sandbox;
  /// The socket of the containerd that has its image; empty: it is not known.
  std::string containerd{};

  bool operator==(const Asker&) const = default;
};

}  // namespace gantry::wasm
