// SPDX-License-Identifier: Apache-2.0
//
// What an OCI runtime says that it can: `BINARY features`. The answer is of the binary alone, so
// it is asked once and kept in a file until the binary is another one.
#pragma once

#include <string>

#include <gantry/error.h>

namespace gantry::runc {

/// The features document of the OCI runtime spec. Empty: the binary has no such command (runc
/// before 1.1, crun before 1.8), or gave no JSON object of at most 256 KiB within 2 s.
/// `keep_dir`: of root's alone, or empty; one file for each path, 64 at most; what a file says
/// counts for the very file at `binary` (device, inode, size, times) only. Not kept: an empty one.
/// Errors: the binary cannot be run. Blocks: up to 2 s. It is a child of the caller, who must not
/// reap others' children: not for an engine. Source: runtime-spec 1.2, features.md.
Result<std::string> FeaturesOf(const std::string& binary, const std::string& keep_dir);

}  // namespace gantry::runc
