// SPDX-License-Identifier: Apache-2.0
//
// Files in memory that have no name and live as long as a descriptor of them:
// how state outlives a process whose descriptors somebody else keeps.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::os {

/// An empty one, CLOEXEC. `name` is shown in /proc/PID/fd.
Result<UniqueFd> CreateMemfd(const std::string& name);

/// The rest works on any regular file. Owner: `fd` is borrowed. Thread: any.
Result<uint64_t> FileSize(int fd);
/// Up to `count` bytes at `offset`; fewer at the file's end.
Result<std::string> ReadAt(int fd, uint64_t offset, size_t count);
/// All of `data`, or an error after a part of it.
Status WriteAt(int fd, uint64_t offset, std::string_view data);
Status Truncate(int fd, uint64_t size);
/// Gives the memory of the whole pages in [begin, end) back; they read as zeros.
Status PunchHole(int fd, uint64_t begin, uint64_t end);

}  // namespace gantry::os
