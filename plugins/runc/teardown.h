// SPDX-License-Identifier: Apache-2.0
//
// Taking a container apart: what still runs, its cgroups, the runtime's state.
//
// For a container that has ended the kernel is enough. The OCI runtime's
// `delete` is run where only it can do it: the container still runs, it has
// poststop hooks, its cgroups are systemd's, its state is not understood. When
// that fails (no binary, a hang) the kernel's way is gone all the same, so that
// nothing is left.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include <gantry/context.h>
#include <gantry/error.h>
#include <gantry/host_process.h>
#include <gantry/ids.h>

#include "plugins/runc/documents.h"
#include "plugins/runc/oci_command.h"

namespace gantry::runc {

struct Remains {
  ContainerId id;
  std::string bundle;
  /// None: of one that is taken up again, whose config.json is read when it is needed.
  std::optional<SpecFacts> spec;
  /// The spec's cgroup was made by this container, for one without readable state.
  bool made_cgroup = false;

  /// Nothing known where config.json cannot be read any more.
  SpecFacts Spec() const;
};

/// `init`: null where it is not known. Again: success. Errors: those of the
/// first step that left something; kDeadlineExceeded for a process that outlives SIGKILL.
/// Blocks: not for long beyond `limit`, the OCI runtime's share of it no longer than
/// `DeleteTimeoutMs`; what was killed gets a second to end in any case and five at most.
/// Without a limit (undoing what took too long) for these and the OCI runtime. Thread:
/// workers.
Status TearDown(const OciCommand& command, SandboxContext& context, const Remains& remains,
                HostProcess* init,
                std::chrono::milliseconds limit = std::chrono::milliseconds::max());

/// Whether the process that a state names still lives.
bool IsAlive(const RuntimeState& state);

}  // namespace gantry::runc
