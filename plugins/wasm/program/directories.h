// SPDX-License-Identifier: Apache-2.0
//
// What of the container's root the guest is given: its file system, once more in the engine's
// words.
#pragma once

#include <string>
#include <vector>

#include <gantry/toolkit/oci/spec.h>

namespace gantry::wasm {

/// Of the same path for the guest as for its process.
struct Directory {
  std::string path;
  bool writable = false;

  bool operator==(const Directory&) const = default;
};

/// The root, and each mount that may be written where what is above it may not, or the other way
/// round: the engine goes by the longest path that fits. First the root, which alone some guests
/// look at. Of mounts that are no directory, or that the process may not read, there is none: what
/// the kernel says of them counts.
std::vector<Directory> DirectoriesOf(const oci::Spec& spec);

}  // namespace gantry::wasm
