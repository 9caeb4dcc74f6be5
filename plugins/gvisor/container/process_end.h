// SPDX-License-Identifier: Apache-2.0
//
// How the end of a process of a sentry is asked for, kept and told
// (gantry/toolkit/guest/process_end.h), and whether memory was the reason.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gantry/host_process.h>
#include <gantry/toolkit/guest/exit_wait.h>
#include <gantry/toolkit/guest/process_end.h>

#include "plugins/gvisor/pod/pod.h"

namespace gantry::gvisor {

struct EndedProcess {
  std::shared_ptr<Pod> pod;
  /// Of the `KnownProcess`.
  std::string path;
  /// Of the question's connection, in the store.
  std::string name;
  int32_t pid = 0;
  /// A container whose init this is. Empty: it is an exec.
  std::string container{};
  /// Its processes do not end with their init, which is none of their pid namespace: what is
  /// left of them is killed.
  bool leaves_processes = false;
  /// Of that container. Null: it has none.
  std::shared_ptr<HostProcess> gofer{};
};

/// As `ExitWait::Begin`. `connections`: each with a Wait or a WaitPID under way.
Result<std::shared_ptr<ExitWait>> AwaitEnd(SandboxContext& context,
                                           std::vector<urpc::Connection> connections,
                                           ExitWait::Ended ended);

ExitWait::Ended TellEnd(std::shared_ptr<EndReport> report, EndedProcess ended);

}  // namespace gantry::gvisor
