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

namespace gantry {

/// An empty one, CLOEXEC. `name` is shown in /proc/PID/fd.
Result<UniqueFd> CreateMemfd(const std::string& name);

/// What the bytes of a file in memory are for: a node may refuse files that do not say whether
/// they are to be executed (vm.memfd_noexec). Source: Linux 6.3, Documentation/userspace-api/
/// mfd_noexec.rst; older kernels do not ask.
enum class MemfdUse { kRead, kExecute };

/// An empty one that can be sealed. Errors: the errno's; EACCES where the node lets no file in
/// memory be executed.
Result<UniqueFd> CreateSealableMemfd(const std::string& name, MemfdUse use);
/// Nobody can change it any more: the seals that runc and crun look for, exactly, F_SEAL_SEAL,
/// _SHRINK, _GROW and _WRITE. It must not be mapped for writing. Owner: `fd` is borrowed.
Status SealMemfd(int fd);
/// A sealed one with a copy of `content`, open for reading alone, since Linux before 6.7 maps no
/// sealed file shared that is open for writing (mm/mmap.c). Unlike a file of the host's it cannot
/// be written by whoever gets the descriptor, whatever rights that one has.
/// Errors: kResourceExhausted, kInternal: no file in memory to be had.
Result<UniqueFd> SealedMemfd(const std::string& name, std::string_view content, MemfdUse use);
/// Another open file of the same bytes, with a position of its own. Errors: the errno's.
Result<UniqueFd> ReopenForReading(const UniqueFd& file);

/// The rest works on any regular file. Owner: `fd` is borrowed. Thread: any.
Result<uint64_t> FileSize(int fd);
/// Up to `count` bytes at `offset`; fewer at the file's end.
Result<std::string> ReadAt(int fd, uint64_t offset, size_t count);
/// All of `data`, or an error after a part of it.
Status WriteAt(int fd, uint64_t offset, std::string_view data);
Status Truncate(int fd, uint64_t size);
/// Gives the memory of the whole pages in [begin, end) back; they read as zeros.
Status PunchHole(int fd, uint64_t begin, uint64_t end);

}  // namespace gantry
