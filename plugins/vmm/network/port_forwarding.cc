// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/network/port_forwarding.h"

#include <atomic>
#include <cstdint>
#include <utility>

#include <gantry/toolkit/forward/relay.h>

namespace gantry::vmm {
namespace {

using forward::PortForward;

Result<std::shared_ptr<PortForward>> BeginOrRecover(SandboxContext& context,
                                                    const PortForwarding& wanted) {
  forward::PortForwardRequest request;
  request.connect = [ports = wanted.ports](uint16_t port, const UniqueFd& /*program*/) {
    return ports.Connect(port);
  };
  request.program = wanted.program;
  request.framed = true;
  request.cgroups = wanted.cgroups;
  if (request.program.empty()) {
    GANTRY_TRY(request.program, forward::FindForwardProgram());
  }
  auto recovered = PortForward::Recover(context, request);
  if (recovered || recovered.error().code != Code::kNotFound) {
    return recovered;
  }
  return PortForward::Begin(context, wanted.netns, std::move(request));
}

}  // namespace

std::shared_ptr<PortForward> ForwardPorts(SandboxContext& context, const PortForwarding& wanted) {
  auto forwarding = BeginOrRecover(context, wanted);
  if (forwarding) {
    return std::move(*forwarding);
  }
  // What a node cannot do for one pod it cannot do for the next: once is enough.
  static std::atomic<bool> said = false;
  context.Count("forward_unavailable");
  context.Log(said.exchange(true) ? LogLevel::kDebug : LogLevel::kWarning,
              "ports cannot be forwarded into this sandbox: " + forwarding.error().message);
  return nullptr;
}

}  // namespace gantry::vmm
