// SPDX-License-Identifier: Apache-2.0
#include "core/metrics/listen.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include "core/config/listen_address.h"
#include "core/os/listen.h"

namespace gantry::metrics {
namespace {

constexpr int kBacklog = 128;

Result<UniqueFd> Bind(const std::string& address, const sockaddr* at, socklen_t size) {
  UniqueFd socket_fd(socket(at->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (!socket_fd || setsockopt(socket_fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0) {
    return FailErrno(errno, "make a socket for '{}'", address);
  }
  if (bind(socket_fd.get(), at, size) != 0 || listen(socket_fd.get(), kBacklog) != 0) {
    if (errno == EADDRINUSE) {
      return Fail(Code::kFailedPrecondition,
                  "listen at '{}': another process does; set another metrics.address", address);
    }
    return FailErrno(errno, "listen at '{}'", address);
  }
  return socket_fd;
}

}  // namespace

Result<UniqueFd> Listen(const std::string& address) {
  const auto parsed = config::ParseListenAddress(address);
  if (!parsed) {
    return Fail(Code::kInvalidArgument, "listen at '{}': expected {}", address,
                config::kListenAddressForms);
  }
  if (!parsed->path.empty()) {
    return os::ListenWherePlaced(parsed->path);
  }
  if (parsed->v6) {
    sockaddr_in6 at{};
    at.sin6_family = AF_INET6;
    at.sin6_port = htons(parsed->port);
    at.sin6_addr = in6addr_loopback;
    return Bind(address, reinterpret_cast<const sockaddr*>(&at), sizeof(at));
  }
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(parsed->port);
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return Bind(address, reinterpret_cast<const sockaddr*>(&at), sizeof(at));
}

}  // namespace gantry::metrics
