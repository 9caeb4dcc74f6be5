// SPDX-License-Identifier: Apache-2.0
//
// Overlay mounts whose options do not fit into the page that mount(2) takes.
//
// First choice is the new mount API, where each lower directory is a parameter
// of its own (`lowerdir+`, Linux 6.5). Where the kernel refuses, the lower
// directories are given relative to their common parent: a thread of its own
// changes into it, which shortens the options mostly enough.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/mount/options.h>

namespace gantry::mount {

/// The value of `lowerdir` taken apart at its colons; `\:` is a colon in a name.
/// `second` is true for data-only layers, those behind a `::`.
std::vector<std::pair<std::string, bool>> SplitLowerDirs(std::string_view value);

/// A name as it is written there, in options that are separated by commas.
std::string EscapeLowerDir(std::string_view dir);

/// The longest directory that all `paths` are below, with its last `/`; empty
/// where there is none but the root.
std::string CommonDirectory(const std::vector<std::string>& paths);

/// Mounts an overlay with options of any length on `target`, which must be
/// absolute. Errors: kInvalidArgument where no way is left; else the errno's.
Status MountLongOverlay(const std::string& source, const std::string& target,
                        const MountOptions& options);

/// The two ways, apart for the tests.
Status MountOverlayByFsopen(const std::string& source, const std::string& target,
                            const MountOptions& options);
Status MountOverlayRelative(const std::string& source, const std::string& target,
                            const MountOptions& options);

}  // namespace gantry::mount
