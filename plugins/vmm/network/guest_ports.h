// SPDX-License-Identifier: Apache-2.0
//
// The end in the guest of forwarded ports (gantry/toolkit/forward/port_forward.h): the agent
// connects to the port on the guest's loopback and dials a stream, which carries the bytes in
// frames, so the request has `framed`.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "plugins/vmm/agent/streams.h"
#include "plugins/vmm/protocol/messages.h"

namespace gantry::vmm {

/// Thread: any.
struct GuestPorts {
  /// Asks the agent.
  std::function<Status(const protocol::Forward& request, Deadline deadline)> ask;
  /// Of the same guest; outlives this.
  StreamListener* streams = nullptr;
  /// Of one connection, until the guest has dialled: its server has longer to answer.
  std::chrono::milliseconds limit{};

  /// As `forward::PortForwardRequest::connect`. Errors: the agent's; kResourceExhausted;
  /// kDeadlineExceeded. Blocks: up to `limit`.
  Result<UniqueFd> Connect(uint16_t port) const;
};

}  // namespace gantry::vmm
