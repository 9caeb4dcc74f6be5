// SPDX-License-Identifier: Apache-2.0
//
// The beginning of a control connection, on the host: whoever dials port 1025 is in the guest, and
// need not be the agent. The first of a boot is, since nothing else runs then; from then on who
// dials again has to know what the host's `Welcome` told it.
#pragma once

#include <string>

#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "plugins/vmm/protocol/greeting.h"

namespace gantry::vmm {

struct Greeted {
  UniqueFd socket;
  /// Its texts are printable and short.
  protocol::Hello hello;
  uint32_t version = 0;
  /// To be kept for the next `GreetAgent`, of a next engine too.
  std::string session;
};

/// Takes connections from `listener`, which does not block, until one of them is the agent's;
/// others are closed. `session`: of the agent that is known; empty: there was none yet.
/// Errors: kDeadlineExceeded: none came, and what did; kFailedPrecondition: no version in common,
/// see `ChooseVersion`, which the agent is told. Blocks: up to `deadline`. Thread: any.
Result<Greeted> GreetAgent(const UniqueFd& listener, const std::string& session, Deadline deadline);

/// The same on one connection. Errors: also kPermissionDenied: it is not the agent.
Result<Greeted> GreetOn(UniqueFd socket, const std::string& session, Deadline deadline);

}  // namespace gantry::vmm
