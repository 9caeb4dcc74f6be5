// SPDX-License-Identifier: Apache-2.0
//
// The states of a task and which call is legal in which; the one place that
// knows. Errors are the ones that containerd and its clients branch on.
#pragma once

#include <string>
#include <string_view>

#include <gantry/error.h>

#include "core/store/record.h"

namespace gantry::task {

using State = store::State;

enum class Operation {
  kStart,
  kDelete,
  kExec,
  kPause,
  kResume,
  kUpdate,
  kCheckpoint,
  kKill,
  kResize,
};

/// Whether `operation` is legal for a process in `state`; `what` names it in
/// the error ("container a1", "exec e1 of a1").
/// Errors: kFailedPrecondition; kNotFound "process already finished: not found"
/// for a signal to what has ended, "container not created: not found" for what is gone.
/// Source: containerd 2.1.9, cmd/containerd-shim-runc-v2/process, answers measured.
Status CheckLegal(Operation operation, State state, std::string_view what);

}  // namespace gantry::task
