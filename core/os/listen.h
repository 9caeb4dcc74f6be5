// SPDX-License-Identifier: Apache-2.0
//
// Sockets at paths that a configuration names, and that somebody may have named by mistake.
#pragma once

#include <string>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::os {

/// A nonblocking stream listener, mode 0600, at the absolute path; its folder is made, mode 0700. A
/// socket that was left there, at which nobody listens any more, is replaced; nothing else is
/// touched. Errors: FAILED_PRECONDITION: somebody listens there, or what is there is no socket;
/// INVALID_ARGUMENT: the path is too long. Blocks: for the file system. Thread: any.
Result<UniqueFd> ListenWherePlaced(const std::string& path);

/// Removes a socket at which nobody listens any more. What is none, or somebody's, stays, without
/// an error; so does what is not there. Errors: the errno's. Blocks: for the file system. Thread:
/// any.
Status RemoveLeftSocket(const std::string& path);

}  // namespace gantry::os
