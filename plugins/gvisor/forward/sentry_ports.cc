// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/forward/sentry_ports.h"

#include <signal.h>
#include <sys/socket.h>

#include <array>
#include <string>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/unix_socket.h>

namespace gantry::gvisor {
namespace {

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

Result<UniqueFd> SentryPorts::Connect(uint16_t port, const UniqueFd& program) const {
  GANTRY_TRY(auto ends, BlockingSocketPair(SOCK_STREAM));
  ExecArgs args;
  args.container = root_;
  args.argv = {kProgramName, std::to_string(port)};
  // Without it the sentry reads the container's /etc/passwd.
  args.env = {"HOME=/"};
  args.cwd = "/";
  args.uid = kNobodyInside;
  args.gid = kNobodyInside;
  args.no_new_privileges = true;
  args.guest_fds = {0};
  const std::array fds = {ends.second.get(), program.get()};
  const Deadline deadline = std::chrono::steady_clock::now() + limit_;
  auto executed = sentry_->Execute(args, fds, deadline);
  if (!executed) {
    return std::unexpected(ToError(executed.error(), "execute gantry-forward"));
  }
  ForgetWhenEnded(*std::move(executed), deadline);
  return std::move(ends.first);
}

/// The sentry keeps how a process ended until somebody has waited for it. It does not matter
/// whether he is still there then.
void SentryPorts::ForgetWhenEnded(Sentry::Executed executed, Deadline deadline) const {
  const std::string arg = WaitPidArg(root_, executed.pid);
  if (const auto sent = executed.connection.Send({.method = kWaitPid, .arg = arg}, deadline);
      !sent) {
    context_.Log(LogLevel::kDebug, ToError(sent.error(), "wait for gantry-forward").message);
  }
}

Result<std::vector<int32_t>> SentryPorts::Serving(Deadline deadline) const {
  const auto all = sentry_->manager().Processes(root_, deadline);
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

Status SentryPorts::End(const std::vector<int32_t>& pids, Deadline deadline) const {
  constexpr const char* kWhat = "end gantry-forward in the sandbox";
  ContainerManager& manager = sentry_->manager();
  for (const int32_t pid : pids) {
    // It ends with its connection by itself, unless the server takes nothing of what is left.
    const auto sent = manager.Signal({.container = root_, .pid = pid}, SIGKILL, deadline);
    if (!sent && !HasEnded(sent.error())) {
      return std::unexpected(ToError(sent.error(), kWhat));
    }
  }
  auto waits = urpc::Connection::Open(sentry_->socket(), deadline);
  if (!waits) {
    return std::unexpected(ToError(waits.error(), kWhat));
  }
  for (const int32_t pid : pids) {
    const std::string arg = WaitPidArg(root_, pid);
    const auto sent = waits->Send({.method = kWaitPid, .arg = arg}, deadline);
    const auto ended = sent ? waits->Receive(kWaitPid, deadline)
                            : urpc::Outcome<urpc::Answer>(std::unexpected(sent.error()));
    if (!ended && !HasEnded(ended.error())) {
      return std::unexpected(ToError(ended.error(), kWhat));
    }
  }
  return {};
}

}  // namespace gantry::gvisor
