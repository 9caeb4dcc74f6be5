// SPDX-License-Identifier: Apache-2.0
//
// The terminal of a container's process, made in the container's own devpts.
// Source: pty(7), ioctl_tty(2), TIOCGPTPEER (Linux 4.13).
#pragma once

#include <optional>

#include <gantry/error.h>
#include <gantry/process.h>
#include <gantry/unique_fd.h>

namespace gantry::container {

struct Terminal {
  /// The maker's.
  UniqueFd master;
  /// The process's.
  UniqueFd replica;
};

/// In the root that the process is in. What is at /dev/pts/ptmx there is used only if
/// it is the kernel's. `proc`: the maker's. Errors: kFailedPrecondition: it is not; kNotFound: the
/// spec mounts no devpts.
Result<Terminal> OpenTerminal(int proc, const std::optional<ConsoleSize>& size, uid_t owner);

/// `terminal` is the controlling one of the session that the process leads.
Status TakeTerminal(int terminal);

}  // namespace gantry::container
