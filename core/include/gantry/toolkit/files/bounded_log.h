// SPDX-License-Identifier: Apache-2.0
//
// The log of a program that somebody may take over: he then writes what he wants, so it lies in a
// file system of its own in memory, which is full at its limit: its writer then gets ENOSPC, and
// nobody else has less. What is in it counts to the cgroup of its writer. Nothing is mounted
// anywhere: the file system goes with the last descriptor, and has to be in no record.
#pragma once

#include <cstddef>
#include <string>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry {

/// A new, empty one, open for reading and appending. Errors: the kernel's; kUnimplemented before
/// Linux 5.2. Blocks: briefly. Thread: any.
Result<UniqueFd> MakeBoundedLog(size_t max_bytes);

/// The last bytes of a file; none: it is no file, or cannot be read. Whoever writes it is not
/// disturbed. Blocks: as the file system does. Thread: any.
std::string LastBytes(const UniqueFd& log, size_t max_bytes);

}  // namespace gantry
