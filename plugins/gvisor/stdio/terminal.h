// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::gvisor {

/// Both sides of a new pseudo-terminal. Source: pty(7), ioctl_tty(2).
struct Terminal {
  UniqueFd master;
  /// For the sentry, which is where it is somebody's terminal.
  UniqueFd replica;

  static Result<Terminal> Open();
};

}  // namespace gantry::gvisor
