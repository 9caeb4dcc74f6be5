// SPDX-License-Identifier: Apache-2.0
//
// Reading, writing, listing and removing files, of procfs and cgroupfs too. Every descriptor made
// here is CLOEXEC.
// Blocks: all, as the file system does; never for a FIFO or a device. Thread: any.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry {

/// The whole file; a FIFO or a device is not opened. Errors: kNotFound; kInvalidArgument: it is no
/// regular file, or longer than `max_bytes`; the errno's.
Result<std::string> ReadFile(const std::string& path, size_t max_bytes);
/// The same below the directory `dir`; a symbolic link at the end is refused (ELOOP).
/// Owner: `dir` is borrowed.
Result<std::string> ReadFileAt(int dir, const std::string& name, size_t max_bytes);
/// The last `max_bytes` of the file, all of a shorter one. Errors: as `ReadFile`.
Result<std::string> ReadTail(const std::string& path, size_t max_bytes);

/// Makes the file or overwrites it, in place: a reader may see a part. `mode` is exact, whatever
/// the umask. A link in its last component is not followed.
Status WriteFile(const std::string& path, std::string_view data, mode_t mode);
/// Writes `data` with one write(2) into a file that exists, as cgroupfs and /proc want it. Links
/// are followed. Errors: kNotFound; the errno's.
Status WriteExisting(const std::string& path, std::string_view data);
/// Owner: `dir` is borrowed.
Status WriteExistingAt(int dir, const std::string& name, std::string_view data);
/// Makes `path` hold `data` at once: whoever reads it sees the old file or the new one, whole,
/// and so it is when two write it side by side. `mode` is exact, whatever the umask. Not synced:
/// what it is for does not outlive a power cut either.
/// Owner: the directory must not be writable for strangers.
Status ReplaceFile(const std::string& path, std::string_view data, mode_t mode);
/// Removes what a `ReplaceFile` of `path` that was killed half-way has left, and nothing else.
/// Nobody may be writing it. Again: success. Errors: kInvalidArgument where its directory has
/// more than `kMaxListedEntries`; the errno's.
Status RemoveUnfinished(const std::string& path);

/// Removes one file. Again: success, as for a file that never was.
Status RemoveFile(const std::string& path);
/// Removes a file, or a directory with all below it: without recursion, with two descriptors
/// however deep it is. Links are not followed (those in `path`'s own parents excepted), and what
/// is mounted below is not entered. Again: success. Errors: kFailedPrecondition at a mount point,
/// with nothing below it touched; what was removed before it stays removed.
Status RemoveTree(const std::string& path);
/// The same for the entry `name` of the directory `dir`, which is borrowed.
Status RemoveTreeAt(int dir, const std::string& name);

/// What the symbolic link at `path` says, of any length.
Result<std::string> ReadLink(const std::string& path);
/// What is at the absolute path, with O_PATH. Errors: the errno's; ELOOP where a symbolic link is
/// in the way, at the end or before it. Source: openat2(2), RESOLVE_NO_SYMLINKS.
Result<UniqueFd> OpenWithoutLinks(const std::string& path);

/// Whether there is something at `path`; a dangling symbolic link counts.
bool Exists(const std::string& path);
bool IsExecutable(const std::string& path);
/// The first program `name` in `path`, directories with colons between; only absolute ones
/// count. Errors: kNotFound.
Result<std::string> FindInPath(std::string_view path, std::string_view name);

/// What is listed where nobody says how much.
inline constexpr size_t kMaxListedEntries = size_t{1} << 20;
/// Names in a directory, without "." and "..", in no order; empty where there is none.
/// Errors: kInvalidArgument with more than `max_entries`; the errno's.
Result<std::vector<std::string>> ListDirectory(const std::string& path,
                                               size_t max_entries = kMaxListedEntries);

/// `count` characters of [a-z0-9] from the kernel's random source.
std::string RandomName(size_t count);

}  // namespace gantry
