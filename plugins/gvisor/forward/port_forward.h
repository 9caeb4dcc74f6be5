// SPDX-License-Identifier: Apache-2.0
//
// Ports forwarded into a sentry: a connection to the loopback of the pod's network namespace on
// the host goes on to the same port of the pod's own loopback.
//
// In the sentry each connection has a process of gantry's for it, executed in the root
// container (program/forward.cc). The sentry has a call for that, containerManager.PortForward,
// which is not used: it ends the server's connection when the client has sent its last byte,
// before the answer, and it connects with the lock held that each other call on a container
// needs: where a server takes no connections, the whole pod can be neither signalled nor
// stopped for two minutes. Seen with runsc 2026-09, runsc/boot/loader.go, portForward.
//
// A checkpoint of the sentry fails while there is such a process, as its program is a file of
// the host's. Whoever makes one ends the connections before: `Suspend`, `EndInSentry`.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <gantry/context.h>
#include <gantry/error.h>
#include <gantry/toolkit/forward/loopback.h>
#include <gantry/toolkit/forward/relay.h>
#include <gantry/unique_fd.h>

#include "plugins/gvisor/sentry/sentry.h"

namespace gantry::gvisor {

struct PortForwardPlan {
  std::shared_ptr<Sentry> sentry;
  /// The container in which processes are executed: the sentry's root.
  std::string root;
  /// The path of gantry-forward.
  std::string program;
  /// Of the process on the host.
  std::vector<std::string> cgroups;
  /// Of a call to the sentry.
  std::chrono::milliseconds limit{};
};

/// Where it is destroyed, what has begun goes on without it. Thread: workers.
class PortForward {
 public:
  /// Listens in the pod's network namespace, `netns`; what it needs for that outlives the
  /// engine. Errors: as of `LeadLoopback` and `ListenOnLoopback`; then nothing is left of it.
  static Result<std::shared_ptr<PortForward>> Begin(SandboxContext& context,
                                                    const std::string& netns, PortForwardPlan plan);
  /// After a restart of the engine: what waits to be accepted is now. Errors: kNotFound: it had
  /// not begun.
  static Result<std::shared_ptr<PortForward>> Recover(SandboxContext& context,
                                                      PortForwardPlan plan);
  /// Ends what `Begin` has begun, in this engine (`forward`) or in one before (null), and all
  /// connections. Again: success. Errors: kDeadlineExceeded. Blocks: up to `limit`.
  static Status End(SandboxContext& context, const std::shared_ptr<PortForward>& forward,
                    std::chrono::milliseconds limit);

  /// Ends all connections on the host, and takes no more until `Continue`: what is new waits.
  /// Again: success. Errors: kDeadlineExceeded. Blocks: up to `limit`, and as long as it takes to
  /// execute one process.
  Status Suspend(std::chrono::milliseconds limit);
  /// The processes in the sentry whose connections were, also those of an engine before.
  /// Errors: the sentry's. While it is suspended.
  Result<std::vector<int32_t>> InSentry(Deadline deadline);
  /// Ends these, once their connections have ended: the sentry has to run. Errors:
  /// kDeadlineExceeded; the sentry's. Blocks: up to `deadline`.
  Status EndInSentry(const std::vector<int32_t>& pids, Deadline deadline);
  /// Errors: as `SandboxContext::WatchReadable`; then it stays suspended.
  Status Continue();

  PortForward(const PortForward&) = delete;
  PortForward& operator=(const PortForward&) = delete;
  ~PortForward();

 private:
  PortForward(SandboxContext& context, UniqueFd listener, PortForwardPlan plan)
      : context_(context), listener_(std::move(listener)), plan_(std::move(plan)) {}

  Status Watch();
  void OnConnection();
  void EndWatch();
  Status Forward(const forward::Arrival& arrival);
  Result<UniqueFd> OpenProgram() const;
  /// Gives the host's end of what the process in the sentry has as its descriptor 0.
  Result<UniqueFd> Execute(uint16_t port, const UniqueFd& program);
  Status HandToRelay(const forward::Arrival& arrival, const UniqueFd& sentry,
                     const UniqueFd& program);
  void ForgetWhenEnded(Sentry::Executed executed, Deadline deadline);
  forward::Relay::Failed OnFailure();
  void Say(uint16_t port, const std::string& cause);

  SandboxContext& context_;
  const UniqueFd listener_;
  const PortForwardPlan plan_;
  /// Of the watch's callback alone, once that has begun, and of `End` and `Suspend` when that
  /// has ended.
  std::unique_ptr<forward::Relay> relay_;
  /// Guards `watch_`.
  std::mutex mutex_;
  std::unique_ptr<gantry::Watch> watch_;
};

}  // namespace gantry::gvisor
