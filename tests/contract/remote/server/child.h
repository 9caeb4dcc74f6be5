// SPDX-License-Identifier: Apache-2.0
//
// Inside of the fake sandbox: how a process gets into its container. Runs in a
// forked child of the sandbox process, which has one thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "tests/contract/remote/message.h"

namespace gantry::remote {

/// A process to be made.
struct ProcessRequest {
  /// A terminal is nobody's controlling terminal.
  bool foreign_console = false;
  /// The OCI process object.
  Json process;
  /// 0, 1, 2; none with a terminal.
  std::vector<UniqueFd> streams;
};

/// Started, and at its last step before it executes the program.
struct Child {
  pid_t pid = 0;
  /// A byte lets it go on; for an init only.
  UniqueFd control;
  UniqueFd console;
};

/// The first process of a container, in namespaces of its own with the root
/// file system `rootfs`, waiting for `Release`.
Result<Child> SpawnInit(const Json& spec, const std::string& rootfs, ProcessRequest wanted);
/// Errors: why the program could not be executed.
Status Release(const Child& init);
/// A further process, running.
Result<Child> SpawnExec(pid_t init, ProcessRequest wanted);

}  // namespace gantry::remote
