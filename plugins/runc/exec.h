// SPDX-License-Identifier: Apache-2.0
//
// An exec: a further process in a running container, made by the OCI runtime's
// `exec --detach`.
#pragma once

#include <memory>
#include <string>

#include <gantry/container.h>
#include <gantry/context.h>
#include <gantry/error.h>
#include <gantry/process.h>

#include "plugins/runc/oci_command.h"

namespace gantry::runc {

/// What an exec needs of its container.
struct ExecPlace {
  ContainerId container;
  std::string bundle;
  OciCommand command;
  SandboxContext* sandbox;
};

/// Thread: workers, one call at a time. Signals, exit and size are the core's,
/// which it can do for a bound host process.
class RuncExec : public Process {
 public:
  RuncExec(ExecPlace place, ExecRequest request, ProcessContext& context);

  /// Errors: kInvalidArgument: no such program in the container.
  Status Start() override;
  /// Removes its files in the bundle.
  Status Delete() override;

  /// Takes up an exec that an engine before this one had started: waits for a
  /// start that is under way and binds its process.
  /// Errors: kAborted: it had not got as far as a process.
  Status Recover();

 private:
  std::string FilePrefix() const;
  std::string Tag() const;
  Status Abort(std::string reason);
  Status Keep(HostProcess& process);
  Status BindRecorded();

  ExecPlace place_;
  ExecRequest request_;
  ProcessContext* context_;
};

}  // namespace gantry::runc
