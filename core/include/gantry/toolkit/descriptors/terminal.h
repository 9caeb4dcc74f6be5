// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry {

/// Both sides of a new pseudo-terminal. Source: pty(7), ioctl_tty(2).
struct Terminal {
  UniqueFd master;
  /// For the process whose terminal it is.
  UniqueFd replica;

  /// Both are CLOEXEC and nobody's controlling terminal. Thread: any. Blocks: never.
  static Result<Terminal> Open();
};

}  // namespace gantry
