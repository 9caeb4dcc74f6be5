// SPDX-License-Identifier: Apache-2.0
//
// Files of /proc, by a descriptor of the maker's own /proc: what the container has at that path, a
// link of its image or a file system mounted over it, is never asked.
// Source: proc(5); openat2(2), RESOLVE_BENEATH and RESOLVE_NO_XDEV.
#pragma once

#include <string>
#include <string_view>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::container {

/// The process's own /proc. Errors: kFailedPrecondition: what is there is none.
Result<UniqueFd> OpenProc();

/// `path` in `proc`, without links. Errors: the errno's, with the path.
Result<UniqueFd> OpenProcFile(int proc, const std::string& path, int flags);

/// Writes `text` in one go. Errors: as above, of write(2) too.
Status WriteProcFile(int proc, const std::string& path, std::string_view text);

/// Up to 64 KiB.
Result<std::string> ReadProcFile(int proc, const std::string& path);

/// The folder of the calling thread: `1/task/1`.
Result<std::string> OwnFolder(int proc);

}  // namespace gantry::container
