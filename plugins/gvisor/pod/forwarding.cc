// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/pod/forwarding.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include <gantry/format.h>
#include <gantry/toolkit/forward/port_forward.h>

#include "plugins/gvisor/forward/sentry_ports.h"

namespace gantry::gvisor {
namespace {

using forward::PortForward;

SentryPorts PortsOf(Pod& pod) {
  return {pod.context(), pod.sentry(), pod.RootId(), pod.options().timeout};
}

Result<std::shared_ptr<PortForward>> BeginForward(Pod& pod, const PodRecord& record) {
  forward::PortForwardRequest wanted;
  wanted.connect = [ports = PortsOf(pod)](uint16_t port, const UniqueFd& program) {
    return ports.Connect(port, program);
  };
  GANTRY_TRY(wanted.program, forward::FindForwardProgram());
  wanted.cgroups = record.place.cgroups;
  auto recovered = PortForward::Recover(pod.context(), wanted);
  if (recovered || recovered.error().code != Code::kNotFound) {
    return recovered;
  }
  return PortForward::Begin(pod.context(), record.netns, wanted);
}

/// What a node cannot do for one pod it cannot do for the next: once is enough.
void SayThatItCannot(SandboxContext& context, const Error& error) {
  static std::atomic<bool> said = false;
  context.Count("forward_unavailable");
  context.Log(said.exchange(true) ? LogLevel::kDebug : LogLevel::kWarning,
              "ports cannot be forwarded into this sandbox: " + error.message);
}

}  // namespace

void ForwardPorts(Pod& pod) {
  const PodRecord record = pod.record();
  if (pod.flags().network != Network::kSandbox || record.netns.empty() || pod.forward()) {
    return;
  }
  auto forward = BeginForward(pod, record);
  if (!forward) {
    SayThatItCannot(pod.context(), forward.error());
    return;
  }
  pod.Have(std::move(*forward));
}

Status SuspendForwarding(Pod& pod, Deadline deadline) {
  const auto forward = pod.forward();
  if (!forward) {
    return {};
  }
  GANTRY_CHECK_OK(forward->Suspend(Left(deadline)));
  const SentryPorts ports = PortsOf(pod);
  GANTRY_TRY(const std::vector<int32_t> pids, ports.Serving(deadline));
  if (pids.empty()) {
    return {};
  }
  pod.context().Log(LogLevel::kInfo,
                    Format("{} forwarded connections end, as the sandbox is saved", pids.size()));
  return pod.sentry()->WhileItRuns([&] { return ports.End(pids, deadline); }, deadline);
}

void ContinueForwarding(Pod& pod) {
  const auto forward = pod.forward();
  const Status continued = forward ? forward->Continue() : Status();
  if (!continued) {
    pod.context().Log(LogLevel::kError,
                      "forward ports: " + continued.error().message +
                          "; no more are forwarded until the engine is restarted");
  }
}

Status StopForwarding(Pod& pod) {
  const auto limit =
      std::min<std::chrono::milliseconds>(pod.context().TimeLeft(), pod.options().timeout);
  // What it holds keeps the namespace.
  const auto forward = pod.forward();
  pod.Have(std::shared_ptr<PortForward>());
  return PortForward::End(pod.context(), forward, limit);
}

}  // namespace gantry::gvisor
