// SPDX-License-Identifier: Apache-2.0
//
// Ports forwarded into a sandbox: a connection to the loopback of the pod's network namespace on
// the host goes on to the same port of the pod's own loopback. For each connection whoever runs the
// sandbox starts gantry-forward in it (program/forward.cc), which connects there; another
// gantry-forward, on the host, carries the bytes between the two (relay.h).
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

namespace gantry::forward {

struct PortForwardRequest {
  /// Starts `program`, which is gantry-forward, or what does the same, in the sandbox, for one
  /// connection to `port` there, and gives the other end of what that has as its descriptor 0.
  /// Errors: any; the connection is reset, and the log says why. Thread: workers, one at a time.
  std::function<Result<UniqueFd>(uint16_t port, const UniqueFd& program)> connect;
  /// The path of gantry-forward.
  std::string program;
  /// What `connect` gives speaks in frames, from its first byte on: of a sandbox whose transport
  /// has no half-close. As `Handover` has it.
  bool framed = false;
  /// Of the process on the host.
  std::vector<std::string> cgroups;
};

/// Where it is destroyed, what has begun goes on without it. Thread: workers.
class PortForward {
 public:
  /// Listens in the pod's network namespace, `netns`; what it needs for that outlives the
  /// engine. Errors: as of `LeadLoopback` and `ListenOnLoopback`; then nothing is left of it.
  static Result<std::shared_ptr<PortForward>> Begin(SandboxContext& context,
                                                    const std::string& netns,
                                                    PortForwardRequest request);
  /// After a restart of the engine: what waits to be accepted is now. Errors: kNotFound: it had
  /// not begun.
  static Result<std::shared_ptr<PortForward>> Recover(SandboxContext& context,
                                                      PortForwardRequest request);
  /// Ends what `Begin` has begun, in this engine (`forward`) or in one before (null), and all
  /// connections. Again: success. Errors: kDeadlineExceeded. Blocks: up to `limit`.
  static Status End(SandboxContext& context, const std::shared_ptr<PortForward>& forward,
                    std::chrono::milliseconds limit);

  /// Ends all connections on the host, and takes no more until `Continue`: what is new waits.
  /// Again: success. Errors: kDeadlineExceeded. Blocks: up to `limit`, and as long as it takes to
  /// connect once.
  Status Suspend(std::chrono::milliseconds limit);
  /// Errors: as `SandboxContext::WatchReadable`; then it stays suspended.
  Status Continue();

  PortForward(const PortForward&) = delete;
  PortForward& operator=(const PortForward&) = delete;
  ~PortForward();

 private:
  PortForward(SandboxContext& context, UniqueFd listener, PortForwardRequest request)
      : context_(context), listener_(std::move(listener)), request_(std::move(request)) {}

  Status Watch();
  void OnConnection();
  void EndWatch();
  Status Forward(const Arrival& arrival);
  Result<UniqueFd> OpenProgram() const;
  Status HandToRelay(const Arrival& arrival, const UniqueFd& inside, const UniqueFd& program);
  Relay::Failed OnFailure();
  void Say(uint16_t port, const std::string& cause);

  SandboxContext& context_;
  const UniqueFd listener_;
  const PortForwardRequest request_;
  /// Of the watch's callback alone, once that has begun, and of `End` and `Suspend` when that
  /// has ended.
  std::unique_ptr<Relay> relay_;
  /// Guards `watch_`.
  std::mutex mutex_;
  std::unique_ptr<gantry::Watch> watch_;
};

}  // namespace gantry::forward
