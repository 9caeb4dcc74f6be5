// SPDX-License-Identifier: Apache-2.0
//
// Points: what is said to the keeper and heard from it, and what is said to others.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <mutex>

#include "core/link/message_type.h"
#include "tests/fault/points/link_stream.h"
#include "tests/fault/points/point.h"

namespace gantry::fault {
namespace {

/// The last part of a unix socket's path; empty for other sockets.
std::string_view PeerOf(const sockaddr* address, socklen_t size) {
  constexpr size_t kPath = offsetof(sockaddr_un, sun_path);
  if (address == nullptr || size <= kPath || address->sa_family != AF_UNIX) {
    return {};
  }
  const char* const path = reinterpret_cast<const sockaddr_un*>(address)->sun_path;
  return ObjectOf({path, strnlen(path, size - kPath)});
}

/// Said to somebody who is known by a path.
bool SayFails(int fd) {
  sockaddr_un peer{};
  socklen_t size = sizeof(peer);
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) {
    return false;
  }
  const std::string_view name = PeerOf(reinterpret_cast<const sockaddr*>(&peer), size);
  return !name.empty() && Fails("send to", name, kEffect);
}

/// The two directions of the link. The engine has one link in its life.
struct Link {
  LinkStream said;
  LinkStream heard;
};

Link& TheLink() {
  static Link link;
  return link;
}

/// Before the bytes go out; nothing is known yet of how many will.
void PassSaid(const msghdr& message) {
  for (size_t i = 0; i < message.msg_iovlen; ++i) {
    LinkStream ahead = TheLink().said;
    ahead.Feed(static_cast<const char*>(message.msg_iov[i].iov_base), message.msg_iov[i].iov_len,
               [](uint16_t type) {
                 if (const auto name = MessageName(type); !name.empty()) {
                   Pass("say", name, kEffect);
                 }
               });
  }
}

void Said(const msghdr& message, size_t sent) {
  for (size_t i = 0; i < message.msg_iovlen && sent > 0; ++i) {
    const size_t part = std::min(sent, message.msg_iov[i].iov_len);
    TheLink().said.Feed(static_cast<const char*>(message.msg_iov[i].iov_base), part,
                        [](uint16_t) {});
    sent -= part;
  }
}

/// Before the engine acts on it.
void PassHeard(const msghdr& message, size_t got) {
  for (size_t i = 0; i < message.msg_iovlen && got > 0; ++i) {
    const size_t part = std::min(got, message.msg_iov[i].iov_len);
    TheLink().heard.Feed(static_cast<const char*>(message.msg_iov[i].iov_base), part,
                         [](uint16_t type) {
                           if (const auto name = MessageName(type); !name.empty()) {
                             Pass("hear", name, kEffect);
                           }
                         });
    got -= part;
  }
}

}  // namespace
}  // namespace gantry::fault

using gantry::fault::Fails;
using gantry::fault::kDescriptor;
using gantry::fault::kEffect;
using gantry::fault::Real;
using gantry::link::kEngineLinkFd;

#pragma GCC visibility push(default)
extern "C" {

ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  static const auto real = Real<decltype(&sendmsg)>("sendmsg");
  if (fd != kEngineLinkFd) {
    return gantry::fault::SayFails(fd) ? -1 : real(fd, message, flags);
  }
  gantry::fault::PassSaid(*message);
  const ssize_t sent = real(fd, message, flags);
  if (sent > 0) {
    gantry::fault::Said(*message, static_cast<size_t>(sent));
  }
  return sent;
}

ssize_t recvmsg(int fd, msghdr* message, int flags) {
  static const auto real = Real<decltype(&recvmsg)>("recvmsg");
  const ssize_t got = real(fd, message, flags);
  if (got > 0 && fd == kEngineLinkFd && (flags & MSG_PEEK) == 0) {
    gantry::fault::PassHeard(*message, static_cast<size_t>(got));
  }
  return got;
}

ssize_t send(int fd, const void* data, size_t size, int flags) {
  static const auto real = Real<decltype(&send)>("send");
  if (fd == kEngineLinkFd) {
    iovec whole{const_cast<void*>(data), size};
    msghdr message{};
    message.msg_iov = &whole;
    message.msg_iovlen = 1;
    return sendmsg(fd, &message, flags);
  }
  return gantry::fault::SayFails(fd) ? -1 : real(fd, data, size, flags);
}

int connect(int fd, const sockaddr* address, socklen_t size) {
  static const auto real = Real<decltype(&connect)>("connect");
  const std::string_view peer = gantry::fault::PeerOf(address, size);
  return !peer.empty() && Fails("connect to", peer, kEffect) ? -1 : real(fd, address, size);
}

int socket(int domain, int type, int protocol) noexcept {
  static const auto real = Real<decltype(&socket)>("socket");
  return Fails("socket", "", kDescriptor) ? -1 : real(domain, type, protocol);
}

int socketpair(int domain, int type, int protocol, int* ends) noexcept {
  static const auto real = Real<decltype(&socketpair)>("socketpair");
  return Fails("socketpair", "", kDescriptor) ? -1 : real(domain, type, protocol, ends);
}

int accept4(int fd, sockaddr* address, socklen_t* size, int flags) {
  static const auto real = Real<decltype(&accept4)>("accept4");
  return Fails("accept", "", kDescriptor) ? -1 : real(fd, address, size, flags);
}

}  // extern "C"
#pragma GCC visibility pop
