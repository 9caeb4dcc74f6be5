// SPDX-License-Identifier: Apache-2.0
//
// Starting a process by way of the OCI runtime: `create`, `exec` and `restore`
// have the same shape. The runtime gets the process's descriptors as its own
// 0, 1 and 2, writes a pid file and leaves; the process stays, as a child of
// the keeper.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gantry/context.h>
#include <gantry/error.h>
#include <gantry/process.h>

#include "plugins/runc/oci_command.h"

namespace gantry::runc {

struct Launch {
  /// "create", "exec" or "restore".
  std::string verb;
  ContainerId container;
  /// Flags of the verb; the pid file, the console and the id are added.
  std::vector<std::string> args;
  std::vector<std::string> env{};
  std::string bundle;
  /// Prefix of the files in the bundle: "init", "exec-x".
  std::string file_prefix;
  /// File name of the console's socket in the bundle.
  std::string console_name;
  std::string tag;
  /// Of 0, 1 and 2 those without which criu cannot restore it.
  std::array<bool, 3> needed_streams{};
};

std::string PidFile(const std::string& bundle, const std::string& file_prefix);

/// The pid in a pid file, and the start time where one was added to it.
struct RecordedProcess {
  HostPid pid;
  uint64_t start_time = 0;
};

/// Errors: kNotFound: no file; kInternal: something else is in it.
Result<RecordedProcess> ReadPidFile(const std::string& path);

/// For a process that has ended, nobody knows how: containerd's own status for
/// that, now. Source: containerd 2.3.4, client/task.go, UnknownExitStatus.
ExitStatus UnknownExit();

/// Attaches the terminal that the OCI runtime has sent for the launch of that tag. Again,
/// also in the next engine: nothing, until `ForgetTerminal`. Errors: kNotFound: none is on
/// its way; as `ReceiveTerminal`.
Status AttachTerminal(SandboxContext& context, ProcessContext& process, const std::string& tag);
/// It is where it belongs, and the process on record. Again: nothing.
void ForgetTerminal(SandboxContext& context, const std::string& tag);

/// Runs it, takes the terminal if there is one, adopts and binds the process. Of a
/// terminal: until `ForgetTerminal` the next engine can attach it, too.
/// Errors: as `OciCommand::Run`. When it fails after the process had been made,
/// that process is killed. Blocks: for the stdio, then for the runtime.
Result<std::shared_ptr<HostProcess>> LaunchProcess(const OciCommand& command,
                                                   SandboxContext& context, ProcessContext& process,
                                                   Launch launch);

}  // namespace gantry::runc
