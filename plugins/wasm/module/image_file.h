// SPDX-License-Identifier: Apache-2.0
//
// A file that a container names, read on the node before the container is there. Its image and
// its volumes are somebody else's: to open a name in them must neither wait nor start anything
// nor lead out of them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "plugins/wasm/module/bytes.h"
#include "plugins/wasm/module/sections.h"

namespace gantry::wasm {

/// A regular file, open for reading.
struct ImageFile {
  UniqueFd file;
  uint64_t size = 0;
  mode_t mode = 0;
  /// Its first bytes, `kHeadBytes` of them or all.
  std::string head;
};

/// What is at `path` in the root `root`, a descriptor of a directory; links are followed as a
/// process of the container follows them. `shown` is what errors call it.
/// Errors: kNotFound; kFailedPrecondition: it is a directory, a FIFO, a device or a socket, which
/// is not opened; else the kernel's. Thread: any. Blocks: as the file system does.
Result<ImageFile> OpenImageFile(int root, const std::string& path, const std::string& shown);
/// The same of what was looked up already. `place`: with O_PATH.
Result<ImageFile> OpenImageFile(const UniqueFd& place, const std::string& shown);

/// All of it, into memory that nobody can change, hashed on the way; then only that is looked at.
/// `shown` is what errors call it. Errors: kFailedPrecondition: it has more than `most` bytes, or
/// changed while it was read; kResourceExhausted: no memory for it; the file system's.
/// Thread: any. Blocks: as the file system does.
Result<ModuleBytes> ReadModule(const ImageFile& file, uint64_t most, const std::string& shown);

/// `WalkSections` of it. Thread: any. Blocks: never. Errors: kInvalidArgument naming `shown`.
Result<Shape> CheckModule(const ModuleBytes& module, const std::string& shown);

}  // namespace gantry::wasm
