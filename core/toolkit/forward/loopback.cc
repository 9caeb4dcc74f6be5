// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <utility>
#include <vector>

#include <gantry/toolkit/forward/loopback.h>

namespace gantry::forward {
namespace {

/// Of connections that nobody has accepted; those come when no engine runs.
constexpr int kBacklog = 128;
/// Waiting longer would be of no use: who accepts has been told that there is something.
constexpr suseconds_t kAcceptLimitMicroseconds = 1000;

template <class T>
Status SetOption(const UniqueFd& socket, int level, int option, const T& value, const char* name) {
  if (setsockopt(socket.get(), level, option, &value, sizeof(value)) != 0) {
    return FailErrno(errno, "set {} of a socket", name);
  }
  return {};
}

/// Of the connection's own side, or of its peer's.
Result<sockaddr_storage> AddressBy(decltype(getsockname)* ask, const UniqueFd& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (ask(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return FailErrno(errno, "ask for a connection's address");
  }
  return address;
}

uint16_t PortOf(const sockaddr_storage& address) {
  const void* const raw = &address;
  return ntohs(address.ss_family == AF_INET ? static_cast<const sockaddr_in*>(raw)->sin_port
                                            : static_cast<const sockaddr_in6*>(raw)->sin6_port);
}

bool IsLoopback(const sockaddr_storage& address) {
  constexpr uint8_t kFirstByte = 127;
  constexpr size_t kMappedAt = 12;
  const void* const raw = &address;
  if (address.ss_family == AF_INET) {
    const in_addr v4 = static_cast<const sockaddr_in*>(raw)->sin_addr;
    return ntohl(v4.s_addr) >> 24 == kFirstByte;
  }
  const in6_addr& v6 = static_cast<const sockaddr_in6*>(raw)->sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&v6) ||
         (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[kMappedAt] == kFirstByte);
}

Result<UniqueFd> SocketIn(const net::Netns& netns) {
  auto sockets = netns.Sockets(AF_INET6, SOCK_STREAM, 0, 1);
  if (!sockets && sockets.error().sys_errno == EAFNOSUPPORT) {
    sockets = netns.Sockets(AF_INET, SOCK_STREAM, 0, 1);
  }
  if (!sockets) {
    return std::unexpected(std::move(sockets).error());
  }
  return std::move(sockets->front());
}

bool IsV6(const UniqueFd& socket) {
  int domain = 0;
  socklen_t size = sizeof(domain);
  return getsockopt(socket.get(), SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_INET6;
}

}  // namespace

Result<UniqueFd> ListenOnLoopback(const net::Netns& netns) {
  GANTRY_TRY(UniqueFd socket, SocketIn(netns));
  if (IsV6(socket)) {
    GANTRY_CHECK_OK(SetOption(socket, IPPROTO_IPV6, IPV6_V6ONLY, 0, "IPV6_V6ONLY"));
  }
  GANTRY_CHECK_OK(SetOption(socket, SOL_SOCKET, SO_BINDTODEVICE, "lo", "SO_BINDTODEVICE"));
  const timeval limit = {0, kAcceptLimitMicroseconds};
  GANTRY_CHECK_OK(SetOption(socket, SOL_SOCKET, SO_RCVTIMEO, limit, "SO_RCVTIMEO"));
  if (listen(socket.get(), kBacklog) != 0) {
    return FailErrno(errno, "listen on the loopback");
  }
  return socket;
}

Result<std::optional<Arrival>> AcceptOnLoopback(const UniqueFd& listener) {
  Arrival arrival;
  arrival.socket.reset(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!arrival.socket) {
    const bool lasting = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
    if (lasting) {
      return Fail(Code::kResourceExhausted, "accept a connection: {}", ErrnoName(errno));
    }
    return std::nullopt;
  }
  const auto peer = AddressBy(getpeername, arrival.socket);
  const auto own = AddressBy(getsockname, arrival.socket);
  if (!peer || !own || !IsLoopback(*peer)) {
    return std::nullopt;
  }
  arrival.port = PortOf(*own);
  return arrival;
}

void ResetConnection(UniqueFd socket) {
  const linger at_once = {1, 0};
  setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

}  // namespace gantry::forward
