// SPDX-License-Identifier: Apache-2.0
//
// Files of a container before it is there, and while it runs: its root, and over it what its spec
// binds there.
#pragma once

#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/oci/spec.h>
#include <gantry/unique_fd.h>

#include "plugins/wasm/module/image_file.h"

namespace gantry::wasm {

/// Thread: one. Blocks: as file systems do.
class RootView {
 public:
  /// `rootfs`: mounted. Errors: the kernel's.
  static Result<RootView> Open(const std::string& rootfs, const std::string& bundle,
                               const std::vector<oci::SpecMount>& mounts);

  /// The file at the absolute `path`, in the root or in the last mount that covers it.
  /// Errors: as `OpenImageFile`; kNotFound also below a mount that binds nothing.
  Result<ImageFile> OpenFile(const std::string& path) const;

  /// Something is mounted at `path` itself.
  bool IsMountPoint(const std::string& path) const;

 private:
  struct Covering {
    /// Normal: absolute, no `.` or `..`, no slash at its end.
    std::string destination;
    /// Empty: what is there cannot be seen from outside.
    std::string source;
  };

  UniqueFd root_;
  std::vector<Covering> mounts_;
};

/// Absolute, without `.`, `..` and double slashes, by its letters alone. `folder`: what a relative
/// one begins at.
std::string NormalPath(const std::string& folder, const std::string& path);

}  // namespace gantry::wasm
