// SPDX-License-Identifier: Apache-2.0
//
// One file of the cache: read without believing it, and written so that it is there whole or not
// at all. Blocks: as the file system does. Thread: any.
#pragma once

#include <cstdint>
#include <string>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "plugins/wasm/cache/entry.h"

namespace gantry::wasm {

/// What a file that is being written is called before.
inline constexpr std::string_view kUnfinished = ".new-";

struct EntryFile {
  UniqueFd file;
  EntryHeader header;
  uint64_t bytes = 0;
  /// Seconds since the epoch.
  int64_t used_at = 0;
};

/// The file `name` of the directory `folder`, with its header. Errors: kNotFound; kDataLoss: it is
/// a link, is not the caller's alone, or has no header that is right; the errno's.
Result<EntryFile> OpenEntry(const UniqueFd& folder, const std::string& name);

/// Its content in a sealed file in memory, open for reading, hashed on the way there.
/// Errors: kDataLoss: the hash is another one; the errno's.
Result<UniqueFd> CopyContent(const EntryFile& entry);

/// Errors: the errno's: nothing is left of it.
Status WriteEntry(const UniqueFd& folder, const std::string& name, EntryHeader header,
                  const UniqueFd& content);

/// The directory `name` of `parent`, the caller's alone; with `make` it is made where there is
/// none. Errors: kNotFound; kFailedPrecondition: it is a link, or others can write to it; the
/// errno's.
Result<UniqueFd> OpenPrivateFolder(int parent, const std::string& name, bool make);

}  // namespace gantry::wasm
