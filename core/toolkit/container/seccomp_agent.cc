// SPDX-License-Identifier: Apache-2.0
#include "core/toolkit/container/seccomp_agent.h"

#include <poll.h>

#include <cerrno>
#include <chrono>
#include <span>
#include <string_view>

#include <gantry/deadline.h>
#include <gantry/format.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/oci/json.h>

namespace gantry::container {
namespace {

// Of the specification that the state complies with.
constexpr std::string_view kVersion = "1.2.0";
constexpr std::chrono::seconds kPatience{10};

std::string Annotations(const SeccompAgent& agent) {
  std::string members;
  for (const auto& [key, value] : agent.annotations) {
    members += (members.empty() ? "" : ",") + oci::Quote(key) + ":" + oci::Quote(value);
  }
  return members.empty() ? "" : Format(R"(,"annotations":{{{}}})", members);
}

Status AwaitRoom(int socket, Deadline deadline) {
  pollfd room{.fd = socket, .events = POLLOUT, .revents = 0};
  const int ready = ::poll(&room, 1, PollTimeout(deadline));
  if (ready < 0 && errno != EINTR) {
    return FailErrno(errno, "wait for the agent");
  }
  return ready == 0 ? Status(Fail(Code::kDeadlineExceeded, "wait for the agent: it takes nothing"))
                    : Status();
}

Status Deliver(const SeccompAgent& agent, std::string_view text, int listener) {
  const Deadline deadline = std::chrono::steady_clock::now() + kPatience;
  GANTRY_TRY(const UniqueFd socket, ConnectUnix(agent.path));
  std::span<const int> fds(&listener, 1);
  while (!text.empty()) {
    GANTRY_TRY(const Transfer sent, SendWithFds(socket.get(), text, fds));
    text.remove_prefix(sent.bytes);
    if (sent.would_block) {
      GANTRY_CHECK_OK(AwaitRoom(socket.get(), deadline));
    } else {
      fds = {};
    }
  }
  return {};
}

}  // namespace

std::string ProcessStateText(const SeccompAgent& agent, pid_t pid) {
  const std::string metadata =
      agent.metadata.empty() ? "" : Format(R"("metadata":{},)", oci::Quote(agent.metadata));
  return Format(
      R"({{"ociVersion":"{}","fds":["seccompFd"],"pid":{},{}"state":{{"ociVersion":"{}","id":{},)"
      R"("status":"{}","pid":{},"bundle":{}{}}}}})",
      kVersion, pid, metadata, kVersion, oci::Quote(agent.id), agent.status,
      agent.init == 0 ? pid : agent.init, oci::Quote(agent.bundle), Annotations(agent));
}

Status TellAgent(const SeccompAgent& agent, pid_t pid, int listener) {
  Status told = Deliver(agent, ProcessStateText(agent, pid), listener);
  if (!told) {
    return std::unexpected(std::move(told).error().Within(
        Format("give the listener of linux.seccomp to the agent at '{}'", agent.path)));
  }
  return {};
}

}  // namespace gantry::container
