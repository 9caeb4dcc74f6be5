// SPDX-License-Identifier: Apache-2.0
//
// A saved sandbox: three files in a directory, under the names that `runsc checkpoint` gives
// them. The first begins with a table of texts, in which gantry, too, leaves a word.
// Source: runsc 20240729 and 2026-09, runsc/sandbox/sandbox.go, pkg/state/statefile/statefile.go.
#pragma once

#include <array>
#include <string>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::gvisor {

/// State, metadata of the pages, pages: in the order in which a sentry takes them.
inline constexpr std::array<const char*, 3> kImageFiles = {"checkpoint.img", "pages_meta.img",
                                                           "pages.img"};
inline constexpr size_t kStateFile = 0;

/// Thread: any; plain data.
struct Image {
  std::string directory;
  std::array<UniqueFd, kImageFiles.size()> files;

  std::array<int, kImageFiles.size()> Fds() const;
};

/// New and empty files, for their owner alone; what was there under their names is removed.
/// Errors: of the file system; then there is none. Blocks: as the file system does.
Result<Image> MakeImage(const std::string& directory);
/// Again: success.
Status RemoveImage(const std::string& directory);
/// To be read. Errors: kNotFound naming what is missing; kInvalidArgument: another runtime's
/// checkpoint, or no files.
Result<Image> OpenImage(const std::string& directory);

/// What the table says.
struct ImageInfo {
  /// Of the sandbox.
  int containers = 0;
  /// `BuildOf` the runsc that has saved it; empty: gantry has not made it.
  std::string build;
};

/// Of an image whose files are open. Errors: kInvalidArgument: it is none.
Result<ImageInfo> ReadImageInfo(const Image& image);

/// The name in the table for `ImageInfo::build`.
inline constexpr const char* kBuildKey = "gantry.build";

/// Tells builds of runsc apart, wherever their files are: not all know a version. `program`: an
/// executable, open, if only by its path (O_PATH). Errors: of the file. Again: the same.
Result<std::string> BuildOf(const UniqueFd& program);

}  // namespace gantry::gvisor
