// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/memfd.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/forward/port_forward.h>
#include <gantry/toolkit/forward/protocol.h>
#include <gantry/toolkit/net/netns.h>

namespace gantry::forward {
namespace {

constexpr const char* kListenerName = "forward-listener";
/// Kept last: where it is, all is.
constexpr const char* kLinkName = "forward-link";
/// What the program is called where it lies in memory.
constexpr const char* kProgramName = "gantry-forward";

}  // namespace

Result<std::shared_ptr<PortForward>> PortForward::Begin(SandboxContext& context,
                                                        const std::string& netns,
                                                        PortForwardRequest request) {
  GANTRY_TRY(const net::Netns space,
             net::About("open network namespace", netns, net::Netns::Open(netns)));
  GANTRY_TRY(UniqueFd listener, ListenOnLoopback(space));
  GANTRY_TRY(const UniqueFd link, LeadLoopback(space, listener));
  GANTRY_CHECK_OK(context.Store(kListenerName, listener));
  if (Status stored = context.Store(kLinkName, link); !stored) {
    context.Drop(kListenerName);
    return std::unexpected(std::move(stored).error());
  }
  std::shared_ptr<PortForward> forward(
      new PortForward(context, std::move(listener), std::move(request)));
  GANTRY_CHECK_OK(forward->Watch());
  return forward;
}

Result<std::shared_ptr<PortForward>> PortForward::Recover(SandboxContext& context,
                                                          PortForwardRequest request) {
  GANTRY_TRY([[maybe_unused]] const UniqueFd link, context.Take(kLinkName));
  GANTRY_TRY(UniqueFd listener, context.Take(kListenerName));
  std::shared_ptr<PortForward> forward(
      new PortForward(context, std::move(listener), std::move(request)));
  forward->relay_ = Relay::Recover(context, forward->OnFailure());
  GANTRY_CHECK_OK(forward->Watch());
  return forward;
}

Status PortForward::End(SandboxContext& context, const std::shared_ptr<PortForward>& forward,
                        std::chrono::milliseconds limit) {
  if (forward) {
    forward->EndWatch();
  }
  context.Drop(kLinkName);
  context.Drop(kListenerName);
  const std::unique_ptr<Relay> relay = forward ? std::exchange(forward->relay_, nullptr)
                                               : Relay::Recover(context, [](uint16_t, int) {});
  return relay ? relay->End(context, limit) : Status();
}

Status PortForward::Suspend(std::chrono::milliseconds limit) {
  EndWatch();
  const std::unique_ptr<Relay> relay = std::exchange(relay_, nullptr);
  return relay ? relay->End(context_, limit) : Status();
}

Status PortForward::Continue() { return Watch(); }

PortForward::~PortForward() {
  EndWatch();
  // It may be telling of a failure.
  relay_.reset();
}

Status PortForward::Watch() {
  auto watch = context_.WatchReadable(listener_.get(), [this] { OnConnection(); });
  if (!watch) {
    return std::unexpected(std::move(watch).error());
  }
  // Until then its callback does nothing, and comes again.
  const std::lock_guard lock(mutex_);
  watch_ = std::move(*watch);
  return {};
}

/// It waits for a callback that runs on another thread, which may wait for the lock.
void PortForward::EndWatch() {
  std::unique_ptr<gantry::Watch> done;
  const std::lock_guard lock(mutex_);
  done = std::move(watch_);
}

void PortForward::OnConnection() {
  {
    const std::lock_guard lock(mutex_);
    if (!watch_) {
      return;
    }
  }
  auto accepted = AcceptOnLoopback(listener_);
  if (!accepted) {
    // It would come again at once, and for ever.
    context_.Log(LogLevel::kError, "forward ports: " + accepted.error().message +
                                       "; no more are forwarded until the engine is restarted");
    EndWatch();
    return;
  }
  std::optional<Arrival>& found = *accepted;
  if (!found) {
    return;
  }
  Arrival arrival = std::move(*found);
  const Status forwarded = Forward(arrival);
  if (forwarded) {
    context_.Count("forwarded_connections");
    return;
  }
  Say(arrival.port, forwarded.error().message);
  ResetConnection(std::move(arrival.socket));
}

Status PortForward::Forward(const Arrival& arrival) {
  GANTRY_TRY(const UniqueFd program, OpenProgram());
  GANTRY_TRY(const UniqueFd inside, request_.connect(arrival.port, program));
  return HandToRelay(arrival, inside, program);
}

/// Read each time: it is small, and may have been replaced.
Result<UniqueFd> PortForward::OpenProgram() const {
  constexpr size_t kMaxProgram = size_t{1} << 20;
  GANTRY_TRY(const std::string program, ReadFile(request_.program, kMaxProgram));
  return SealedMemfd(kProgramName, program, MemfdUse::kExecute);
}

Status PortForward::HandToRelay(const Arrival& arrival, const UniqueFd& inside,
                                const UniqueFd& program) {
  if (relay_) {
    Status taken = relay_->Take(arrival.socket, inside, arrival.port, request_.framed);
    if (taken || taken.error().code != Code::kUnavailable) {
      return taken;
    }
  }
  GANTRY_TRY(relay_, Relay::Start(context_, program, request_.cgroups, OnFailure()));
  return relay_->Take(arrival.socket, inside, arrival.port, request_.framed);
}

Relay::Failed PortForward::OnFailure() {
  return [this](uint16_t port, int sys_errno) {
    if (port != kNoPort) {
      Say(port, "connect: " + ErrnoName(sys_errno));
      return;
    }
    context_.Count("forward_failures");
    context_.Log(LogLevel::kWarning,
                 Format("gantry-forward could not give up its rights, and forwards nothing: {}; it "
                        "needs CAP_SYS_ADMIN and a kernel with mount and network namespaces",
                        ErrnoName(sys_errno)));
  };
}

void PortForward::Say(uint16_t port, const std::string& cause) {
  context_.Count("forward_failures");
  context_.Log(LogLevel::kInfo,
               Format("forward a connection to port {} of the pod: {}", port, cause));
}

}  // namespace gantry::forward
