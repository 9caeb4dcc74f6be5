// SPDX-License-Identifier: Apache-2.0
//
// Whose pidfd it is.
#pragma once

#include <sys/types.h>

#include <gantry/error.h>

namespace gantry {

/// The number in the pid namespace of /proc, which need not be this process's. It may be another
/// process's by now: look at the pidfd once more after what was done by it.
/// Errors: kNotFound: the process has been collected; kInvalidArgument: it has no number there, or
/// this is no pidfd. Owner: `pidfd` is borrowed. Thread: any. Blocks: never for long.
/// Source: pidfd_open(2); Linux, fs/pidfs.c, `Pid` in fdinfo.
Result<pid_t> PidOf(int pidfd);

}  // namespace gantry
