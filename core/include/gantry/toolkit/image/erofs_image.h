// SPDX-License-Identifier: Apache-2.0
//
// Writes EROFS images: one directory with files and empty directories in it, no more.
//
// Every byte of content lies in blocks of its own, since a sentry runs no program whose
// last part is kept beside its inode. No feature of the format is asked for that came after
// its first release, so that every reader takes the image. The same entries give the same
// bytes.
// Source: Linux 6.12, fs/erofs/erofs_fs.h and Documentation/filesystems/erofs.rst; gVisor
// 20240729 and 2026-08, pkg/erofs/erofs.go.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <string_view>

#include <gantry/error.h>

namespace gantry {

/// What is in the root directory.
struct ErofsEntry {
  /// With S_IFREG or S_IFDIR.
  mode_t mode = 0;
  /// Of a file.
  std::string_view content;
};

/// The whole image. Its root directory has mode 0755; all belongs to root and is of the
/// epoch's first second. `entries`: by name; those of one directory block and of one inode
/// block, which are about a hundred.
/// Errors: kInvalidArgument: a name, a mode or more entries than fit.
Result<std::string> ErofsImage(const std::map<std::string, ErofsEntry>& entries);

}  // namespace gantry
