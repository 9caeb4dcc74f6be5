// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/forward/port_forward.h"

#include <signal.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/memfd.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/forward/protocol.h>
#include <gantry/toolkit/net/netns.h>
#include <gantry/toolkit/process/pidfd.h>

#include "plugins/gvisor/launch/child.h"

namespace gantry::gvisor {
namespace {

constexpr const char* kListenerName = "forward-listener";
/// Kept last: where it is, all is.
constexpr const char* kLinkName = "forward-link";
/// Both its `argv[0]` and what it calls itself.
constexpr const char* kProgramName = "gantry-forward";
/// What the sentry calls a program that came as a descriptor, until it has named itself.
/// Source: runsc 2026-09, pkg/sentry/fsimpl/host/host.go.
constexpr const char* kUnnamed = "host:[";
constexpr uint32_t kNobodyInside = 65534;

/// What a container has started itself has a parent.
bool IsOurs(const ProcessLine& one) {
  return one.parent == 0 && one.uid == kNobodyInside &&
         (one.command == kProgramName || one.command.starts_with(kUnnamed));
}

/// The sentry's word for a process that it does not know any more.
bool HasEnded(const urpc::Failure& failure) { return failure.cause == urpc::Cause::kRefused; }

}  // namespace

Result<std::shared_ptr<PortForward>> PortForward::Begin(SandboxContext& context,
                                                        const std::string& netns,
                                                        PortForwardPlan plan) {
  GANTRY_TRY(const net::Netns space,
             net::About("open network namespace", netns, net::Netns::Open(netns)));
  GANTRY_TRY(UniqueFd listener, forward::ListenOnLoopback(space));
  GANTRY_TRY(const UniqueFd link, forward::LeadLoopback(space, listener));
  GANTRY_CHECK_OK(context.Store(kListenerName, listener));
  if (Status stored = context.Store(kLinkName, link); !stored) {
    context.Drop(kListenerName);
    return std::unexpected(std::move(stored).error());
  }
  std::shared_ptr<PortForward> forward(
      new PortForward(context, std::move(listener), std::move(plan)));
  GANTRY_CHECK_OK(forward->Watch());
  return forward;
}

Result<std::shared_ptr<PortForward>> PortForward::Recover(SandboxContext& context,
                                                          PortForwardPlan plan) {
  GANTRY_TRY([[maybe_unused]] const UniqueFd link, context.Take(kLinkName));
  GANTRY_TRY(UniqueFd listener, context.Take(kListenerName));
  std::shared_ptr<PortForward> forward(
      new PortForward(context, std::move(listener), std::move(plan)));
  forward->relay_ = forward::Relay::Recover(context, forward->OnFailure());
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
  const std::unique_ptr<forward::Relay> relay =
      forward ? std::exchange(forward->relay_, nullptr)
              : forward::Relay::Recover(context, [](uint16_t, int) {});
  return relay ? relay->End(context, limit) : Status();
}

Status PortForward::Suspend(std::chrono::milliseconds limit) {
  EndWatch();
  const std::unique_ptr<forward::Relay> relay = std::exchange(relay_, nullptr);
  return relay ? relay->End(context_, limit) : Status();
}

Status PortForward::Continue() { return Watch(); }

Result<std::vector<int32_t>> PortForward::InSentry(Deadline deadline) {
  const auto all = plan_.sentry->manager().Processes(plan_.root, deadline);
  if (!all) {
    return std::unexpected(ToError(all.error(), "look for gantry-forward in the sandbox"));
  }
  std::vector<int32_t> pids;
  for (const ProcessLine& one : *all) {
    if (IsOurs(one)) {
      pids.push_back(static_cast<int32_t>(one.pid));
    }
  }
  return pids;
}

Status PortForward::EndInSentry(const std::vector<int32_t>& pids, Deadline deadline) {
  constexpr const char* kWhat = "end gantry-forward in the sandbox";
  ContainerManager& manager = plan_.sentry->manager();
  for (const int32_t pid : pids) {
    // It ends with its connection by itself, unless the server takes nothing of what is left.
    const auto sent = manager.Signal({.container = plan_.root, .pid = pid}, SIGKILL, deadline);
    if (!sent && !HasEnded(sent.error())) {
      return std::unexpected(ToError(sent.error(), kWhat));
    }
  }
  auto waits = urpc::Connection::Open(plan_.sentry->socket(), deadline);
  if (!waits) {
    return std::unexpected(ToError(waits.error(), kWhat));
  }
  for (const int32_t pid : pids) {
    const std::string arg = WaitPidArg(plan_.root, pid);
    const auto sent = waits->Send({.method = kWaitPid, .arg = arg}, deadline);
    const auto ended = sent ? waits->Receive(kWaitPid, deadline)
                            : urpc::Outcome<urpc::Answer>(std::unexpected(sent.error()));
    if (!ended && !HasEnded(ended.error())) {
      return std::unexpected(ToError(ended.error(), kWhat));
    }
  }
  return {};
}

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
  auto accepted = forward::AcceptOnLoopback(listener_);
  if (!accepted) {
    // It would come again at once, and for ever.
    context_.Log(LogLevel::kError, "forward ports: " + accepted.error().message +
                                       "; no more are forwarded until the engine is restarted");
    EndWatch();
    return;
  }
  std::optional<forward::Arrival>& found = *accepted;
  if (!found) {
    return;
  }
  forward::Arrival arrival = std::move(*found);
  const Status forwarded = Forward(arrival);
  if (forwarded) {
    context_.Count("forwarded_connections");
    return;
  }
  Say(arrival.port, forwarded.error().message);
  forward::ResetConnection(std::move(arrival.socket));
}

Status PortForward::Forward(const forward::Arrival& arrival) {
  GANTRY_TRY(const UniqueFd program, OpenProgram());
  GANTRY_TRY(const UniqueFd sentry, Execute(arrival.port, program));
  return HandToRelay(arrival, sentry, program);
}

/// Read each time: it is small, and may have been replaced.
Result<UniqueFd> PortForward::OpenProgram() const {
  constexpr size_t kMaxProgram = size_t{1} << 20;
  GANTRY_TRY(const std::string program, ReadFile(plan_.program, kMaxProgram));
  return SealedMemfd(kProgramName, program, MemfdUse::kExecute);
}

Status PortForward::HandToRelay(const forward::Arrival& arrival, const UniqueFd& sentry,
                                const UniqueFd& program) {
  if (relay_) {
    Status taken = relay_->Take(arrival.socket, sentry, arrival.port);
    if (taken || taken.error().code != Code::kUnavailable) {
      return taken;
    }
  }
  GANTRY_TRY(relay_, forward::Relay::Start(context_, program, plan_.cgroups, OnFailure()));
  return relay_->Take(arrival.socket, sentry, arrival.port);
}

Result<UniqueFd> PortForward::Execute(uint16_t port, const UniqueFd& program) {
  GANTRY_TRY(auto ends, BlockingSocketPair(SOCK_STREAM));
  ExecArgs args;
  args.container = plan_.root;
  args.argv = {kProgramName, std::to_string(port)};
  // Without it the sentry reads the container's /etc/passwd.
  args.env = {"HOME=/"};
  args.cwd = "/";
  args.uid = kNobodyInside;
  args.gid = kNobodyInside;
  args.no_new_privileges = true;
  args.guest_fds = {0};
  const std::array fds = {ends.second.get(), program.get()};
  const Deadline deadline = std::chrono::steady_clock::now() + plan_.limit;
  auto executed = plan_.sentry->Execute(args, fds, deadline);
  if (!executed) {
    return std::unexpected(ToError(executed.error(), "execute gantry-forward"));
  }
  ForgetWhenEnded(*std::move(executed), deadline);
  return std::move(ends.first);
}

/// The sentry keeps how a process ended until somebody has waited for it. It does not matter
/// whether he is still there then.
void PortForward::ForgetWhenEnded(Sentry::Executed executed, Deadline deadline) {
  const std::string arg = WaitPidArg(plan_.root, executed.pid);
  if (const auto sent = executed.connection.Send({.method = kWaitPid, .arg = arg}, deadline);
      !sent) {
    context_.Log(LogLevel::kDebug, ToError(sent.error(), "wait for gantry-forward").message);
  }
}

forward::Relay::Failed PortForward::OnFailure() {
  return [this](uint16_t port, int sys_errno) {
    if (port != forward::kNoPort) {
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

}  // namespace gantry::gvisor
