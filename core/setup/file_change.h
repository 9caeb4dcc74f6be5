// SPDX-License-Identifier: Apache-2.0
//
// Changing a file that a running node depends on: whole or not at all, and not where it is
// something else than it seems. Thread: any. Blocks: on files.
#pragma once

#include <optional>
#include <string>

#include <gantry/error.h>

namespace gantry::setup {

/// What an absolute path lies in.
std::string FolderOf(const std::string& path);

struct FileChange {
  std::string path;
  /// Nothing: there is no such file.
  std::optional<std::string> before;
  std::optional<std::string> after;
  /// With the file its folder goes, where it is empty then.
  bool remove_folder = false;

  bool changes() const { return before != after; }
};

/// What is in a file that may be changed; nothing: there is none. Errors: kFailedPrecondition: it
/// is a symbolic link, has other names, is no regular file, or others may write its folder;
/// kInvalidArgument: it is longer than any configuration; the errno's.
Result<std::optional<std::string>> ReadForChange(const std::string& path);

/// Can the change be made, as far as can be seen without making it. Errors: the errno's, EROFS
/// among them.
Status CheckWritable(const std::string& path);

/// Makes it. Whoever reads the file sees the old or the new one, whole, after a power cut too.
/// Mode, owner and extended attributes stay; a new file has mode 0644, a new folder 0755. Errors:
/// kAborted: the file is not `before` any more, and nothing was changed; the errno's.
Status Apply(const FileChange& change);

}  // namespace gantry::setup
