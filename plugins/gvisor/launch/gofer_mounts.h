// SPDX-License-Identifier: Apache-2.0
//
// A gofer of a mapped user namespace cannot open what is barred to its user, and cannot map a
// mount's ids. It asks whoever started it for such a mount, by a call of gVisor's own
// protocol: the roles of urpc turned round, and the answer is a descriptor.
// Source: runsc 2026-09, runsc/cmd/gofer.go, runsc/container/container.go (goferToHostRPC).
#pragma once

#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/host_process.h>
#include <gantry/unique_fd.h>

#include "plugins/gvisor/spec/spec.h"

namespace gantry::gvisor {

/// Answers on `socket` until the gofer has closed its end, as it does before it serves.
/// What it may ask for are the bind mounts of `spec`.
/// Errors: kDeadlineExceeded; kInternal: what it asks cannot be understood.
/// Blocks: up to `deadline`.
Status ServeMounts(const UniqueFd& socket, HostPid gofer, const Spec& spec, Deadline deadline);

}  // namespace gantry::gvisor
