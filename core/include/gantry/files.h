// SPDX-License-Identifier: Apache-2.0
//
// The few calls on files that backends make. Every descriptor made here is CLOEXEC.
// Blocks: all, as the file system does. Thread: any.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>

namespace gantry {

/// The whole file. Errors: kNotFound; kResourceExhausted above `max_bytes`.
Result<std::string> ReadFile(const std::string& path, size_t max_bytes);
/// The last `max_bytes` of the file, all of a shorter one.
Result<std::string> ReadTail(const std::string& path, size_t max_bytes);
/// Replaces the file. A link in its last component is not followed.
Status WriteFile(const std::string& path, std::string_view data, mode_t mode);
/// The same at once: whoever reads it sees the old text or the new one. Not synced.
Status ReplaceFile(const std::string& path, std::string_view data, mode_t mode);
/// What a `ReplaceFile` that was killed half-way leaves.
std::string UnfinishedOf(const std::string& path);
/// Again: success, as for a file that never was.
Status RemoveFile(const std::string& path);
/// Removes a directory and what is in it; links are not followed. Again: success.
Status RemoveTree(const std::string& path);
bool Exists(const std::string& path);
bool IsExecutable(const std::string& path);
/// The first program `name` in `path`, directories with colons between; only absolute ones
/// count. Errors: kNotFound.
Result<std::string> FindInPath(std::string_view path, std::string_view name);
/// Names in a directory, without `.` and `..`; empty where there is none.
Result<std::vector<std::string>> ListDirectory(const std::string& path);

}  // namespace gantry
