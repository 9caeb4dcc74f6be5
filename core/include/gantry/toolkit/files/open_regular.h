// SPDX-License-Identifier: Apache-2.0
//
// A file whose name comes from somebody who is not trusted with the host's files. To open one is
// already to do something: a FIFO waits for its other end, a device may start or rewind, a link
// leads elsewhere. So it is looked at before it is opened, by the same descriptor.
#pragma once

#include <span>
#include <string>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry {

/// For reading. It is a regular file, below one of `prefixes` (directories, absolute; their own
/// links are followed) with no link on the way from there. It can be reached at no other name than
/// the one that was looked at. Errors: kPermissionDenied: below none of them, or by a link;
/// kInvalidArgument: no absolute path, or no regular file; else the kernel's.
/// Blocks: as the file system does, never for a FIFO or a device. Thread: any.
Result<UniqueFd> OpenRegularBelow(const std::string& path, std::span<const std::string> prefixes);

}  // namespace gantry
