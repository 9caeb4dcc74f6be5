// SPDX-License-Identifier: Apache-2.0
//
// A driver's request to start a program, followed by a program that is no keeper.
#pragma once

#include <sys/types.h>

#include <gantry/error.h>
#include <gantry/host_process.h>

namespace gantry::test {

/// A child of this process with the request's program, words, environment and descriptors; all else
/// is as here. Errors: the errno's. Thread: any.
Result<pid_t> Execute(const SpawnRequest& request);

/// Until that child has ended; its status as wait(2) gives it.
int AwaitChild(pid_t child);

}  // namespace gantry::test
