// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/forward/protocol.h>
#include <gantry/toolkit/forward/relay.h>

namespace gantry::forward {
namespace {

constexpr const char* kStoreName = "forward-relay";
constexpr const char* kSpawnTag = "forward";

}  // namespace

Result<std::unique_ptr<Relay>> Relay::Start(SandboxContext& context, const UniqueFd& program,
                                            std::vector<std::string> cgroups, Failed failed) {
  GANTRY_TRY(auto ends, BlockingSocketPair(SOCK_SEQPACKET));
  GANTRY_CHECK_OK(context.Store(kStoreName, ends.first));
  // As root: it gives that up itself, with all else that it has (program/rights.h).
  SpawnRequest request;
  request.argv = {"gantry-forward"};
  GANTRY_TRY(request.program, program.Duplicate());
  request.fds.emplace_back(std::move(ends.second), kControlNumber);
  request.cgroups = std::move(cgroups);
  request.tag = kSpawnTag;
  auto process = context.Spawn(std::move(request));
  if (!process) {
    context.Drop(kStoreName);
    return std::unexpected(std::move(process).error());
  }
  std::unique_ptr<Relay> relay(
      new Relay(std::move(*process), std::move(ends.first), std::move(failed)));
  GANTRY_CHECK_OK(relay->WatchReports(context));
  return relay;
}

std::unique_ptr<Relay> Relay::Recover(SandboxContext& context, Failed failed) {
  auto process = context.FindSpawned(kSpawnTag);
  auto control = context.Take(kStoreName);
  if (!process || !control) {
    return nullptr;
  }
  std::unique_ptr<Relay> relay(
      new Relay(std::move(process), std::move(*control), std::move(failed)));
  if (const Status watched = relay->WatchReports(context); !watched) {
    context.Log(LogLevel::kWarning, "watch gantry-forward: " + watched.error().message);
  }
  return relay;
}

Status Relay::WatchReports(SandboxContext& context) {
  auto watch = context.WatchReadable(control_.get(), [this] { OnReport(); });
  if (!watch) {
    return std::unexpected(std::move(watch).error());
  }
  // Until then its callback does nothing, and comes again.
  const MutexLock lock(mutex_);
  watch_ = std::move(*watch);
  return {};
}

void Relay::OnReport() {
  Report report{};
  {
    const MutexLock lock(mutex_);
    if (!watch_) {
      return;
    }
  }
  const ssize_t n = recv(control_.get(), &report, sizeof(report), MSG_DONTWAIT);
  if (n == sizeof(report)) {
    failed_(report.port, report.error);
  } else if (n == 0) {
    EndWatch();
  }
}

/// It waits for a callback that runs on another thread, which may wait for the lock.
void Relay::EndWatch() {
  std::unique_ptr<Watch> done;
  const MutexLock lock(mutex_);
  done = std::move(watch_);
}

Status Relay::Take(const UniqueFd& client, const UniqueFd& sandbox, uint16_t port, bool framed) {
  const std::array fds = {client.get(), sandbox.get()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(fds))> control{};
  Handover handover{.port = port, .framed = static_cast<uint16_t>(framed ? 1 : 0)};
  iovec part{&handover, sizeof(handover)};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(fds));
  std::memcpy(CMSG_DATA(header), fds.data(), sizeof(fds));
  if (sendmsg(control_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
    return {};
  }
  if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN) {
    return Fail(Code::kUnavailable, "hand over a connection: gantry-forward has ended");
  }
  if (errno == EAGAIN) {
    return Fail(Code::kResourceExhausted, "hand over a connection: gantry-forward is behind");
  }
  return FailErrno(errno, "hand over a connection to gantry-forward");
}

Status Relay::End(SandboxContext& context, std::chrono::milliseconds limit) {
  context.Drop(kStoreName);
  if (process_->Ended()) {
    return {};
  }
  IgnoreError(process_->Signal(SIGKILL), "it may have ended by itself");
  GANTRY_TRY([[maybe_unused]] const WaitStatus end, process_->Wait(limit));
  return {};
}

Result<std::string> FindForwardProgram() {
  Dl_info self = {};
  std::string folder;
  if (dladdr(reinterpret_cast<void*>(&FindForwardProgram), &self) != 0 &&
      self.dli_fname != nullptr) {
    folder = self.dli_fname;
    folder.resize(std::max<size_t>(folder.rfind('/'), 0));
  }
  for (const std::string& place : {folder + "/../gantry-forward", folder + "/gantry-forward"}) {
    if (IsExecutable(place)) {
      return place;
    }
  }
  return Fail(Code::kFailedPrecondition,
              "find gantry-forward, which forwards ports: not beside '{}'; install it again",
              folder);
}

}  // namespace gantry::forward
