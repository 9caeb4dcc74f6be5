// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/guest/forwards.h"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

namespace gantry::vmm::guest {
namespace {

UniqueFd SocketOf(int family) {
  return UniqueFd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

int ConnectTo(const UniqueFd& socket, const sockaddr* address, socklen_t size) {
  return ::connect(socket.get(), address, size) == 0 ? 0 : errno;
}

int ConnectV4(const UniqueFd& socket, uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return ConnectTo(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
}

int ConnectV6(const UniqueFd& socket, uint16_t port) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  address.sin6_addr = in6addr_loopback;
  return ConnectTo(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
}

}  // namespace

Forwards::~Forwards() {
  for (One& one : all_) {
    Stop(one);
  }
}

Status Forwards::Begin(const protocol::Forward& request) {
  if (request.port == 0 || request.port > UINT16_MAX) {
    return Fail(Code::kInvalidArgument, "forward port {}: it is none", request.port);
  }
  Forget();
  if (all_.size() >= kMost) {
    return Fail(Code::kResourceExhausted, "forward port {}: there are {} connections already",
                request.port, kMost);
  }
  GANTRY_TRY(UniqueFd socket, platform_.Dial(protocol::kStreamPort));
  One& one = all_.emplace_back();
  one.port = static_cast<uint16_t>(request.port);
  // The host waits for it, and says so.
  one.stream = std::make_unique<Stream>(loop_, std::move(socket), request.token, [](int) {});
  loop_.After(&one, kConnectTime, [this, &one] { Failed(one, ETIMEDOUT); });
  Connect(one, false);
  return {};
}

/// Those whose stream has ended, by whichever side.
void Forwards::Forget() {
  for (One& one : all_) {
    if (one.stream->done()) {
      Stop(one);
    }
  }
  std::erase_if(all_, [](const One& one) { return one.stream->done(); });
}

void Forwards::Stop(One& one) {
  loop_.Cancel(&one);
  one.on_server.Reset();
  one.server.reset();
}

/// On 127.0.0.1, or, of a server that has none there, on ::1.
void Forwards::Connect(One& one, bool v6) {
  one.server = SocketOf(v6 ? AF_INET6 : AF_INET);
  int error = errno;
  if (one.server) {
    error = v6 ? ConnectV6(one.server, one.port) : ConnectV4(one.server, one.port);
  }
  if (error == 0) {
    Connected(one);
  } else if (error == EINPROGRESS) {
    one.on_server = loop_.On(one.server.get(), EPOLLOUT, [this, &one](uint32_t) { OnServer(one); });
  } else {
    Failed(one, error);
  }
}

void Forwards::OnServer(One& one) {
  one.on_server.Reset();
  int error = 0;
  socklen_t size = sizeof(error);
  if (::getsockopt(one.server.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
    error = errno;
  }
  if (error == 0) {
    Connected(one);
  } else {
    Failed(one, error);
  }
}

void Forwards::Connected(One& one) {
  auto other = one.server.Duplicate();
  if (!other) {
    Failed(one, other.error().sys_errno);
    return;
  }
  UniqueFd server = std::move(one.server);
  Stop(one);
  one.stream->Begin(std::string(1, '\0'), std::move(server), std::move(*other));
}

/// The error of the first family is the one to be told: a server has that one, as a rule.
void Forwards::Failed(One& one, int error) {
  one.on_server.Reset();
  one.server.reset();
  if (one.first_error == 0 && error != ETIMEDOUT) {
    one.first_error = error;
    Connect(one, true);
    return;
  }
  Stop(one);
  const int told = one.first_error != 0 ? one.first_error : error;
  one.stream->End(std::string(1, static_cast<char>(told)));
}

}  // namespace gantry::vmm::guest
