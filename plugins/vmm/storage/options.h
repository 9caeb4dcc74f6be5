// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <gantry/error.h>

namespace gantry::vmm {

inline constexpr uint32_t kLayerMib = 4096;

/// What a handler may set for the files of its pods. Thread: any; plain data.
struct StorageOptions {
  /// `virtiofsd`: the program that shows the host's files to a guest; absolute.
  std::string virtiofsd = "/usr/libexec/virtiofsd";
  /// `virtiofs_cache`: what a guest may keep of files that the host may change too: "auto" (what it
  /// has seen is looked at again after a second and whenever a file is opened), "metadata", "never"
  /// or "always" (only where nobody on the host writes: it shows no update of a secret).
  std::string cache = "auto";
  /// Of `root_fs`: roots of block images as such ("auto", "block"), and others by virtiofs ("auto",
  /// "virtiofs").
  bool block_roots = true;
  bool virtiofs_roots = true;
  /// `writable_layer_mib`: how much a container whose root is made of images that are shared may
  /// write. 0: half of the guest's memory, or `kLayerMib` on a disk.
  uint32_t writable_layer_mib = 0;
  /// `layers_directory`: of this node's disk, where that is kept; empty: it is kept in the guest's
  /// memory.
  std::string layers_directory{};
};

/// Errors: kInvalidArgument, naming the option.
Status CheckStorageOptions(const StorageOptions& options);

}  // namespace gantry::vmm
