// SPDX-License-Identifier: Apache-2.0
//
// Ports forwarded into a guest for as long as its machine is there, as far as the node can do that:
// a pod whose node cannot runs without it, and the log says so.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gantry/context.h>
#include <gantry/toolkit/forward/port_forward.h>

#include "plugins/vmm/network/guest_ports.h"

namespace gantry::vmm {

struct PortForwarding {
  /// The pod's network namespace.
  std::string netns;
  GuestPorts ports;
  /// What the process that carries the bytes is born in.
  std::vector<std::string> cgroups;
  /// gantry-forward; empty: the one beside the plugins.
  std::string program;
};

/// Begins it, or takes up that of an engine before this one. Null: the node cannot; the log has
/// why. It ends by `forward::PortForward::End`, once the machine has ended. Thread: workers.
std::shared_ptr<forward::PortForward> ForwardPorts(SandboxContext& context,
                                                   const PortForwarding& wanted);

}  // namespace gantry::vmm
