// SPDX-License-Identifier: Apache-2.0
//
// What a gofer asks for, which may be what a container has made of it: it may have the mounts of
// its spec, and nothing is opened that is none of them.
#include <sys/socket.h>
#include <unistd.h>

#include "plugins/gvisor/launch/gofer_mounts.h"
#include "tests/fuzz/fuzz.h"

namespace gantry::fuzz {

void FuzzOne(std::string_view input) {
  int ends[2];
  Require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "there are sockets");
  const UniqueFd ours(ends[0]);
  const UniqueFd theirs(ends[1]);
  // What does not go in is not asked.
  send(theirs.get(), input.data(), input.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  shutdown(theirs.get(), SHUT_WR);
  gvisor::Spec spec;
  spec.mounts.push_back({});
  spec.mounts.back().source = "/proc";
  const Deadline soon = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  const Status served = gvisor::ServeMounts(ours, HostPid{getpid()}, spec, soon);
  Require(served.has_value() || !served.error().message.empty(), "a failure says why");
}

}  // namespace gantry::fuzz
