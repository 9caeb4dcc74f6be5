// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/toolkit/forward/forward_fixture.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <gantry/format.h>

namespace gantry::forward {
namespace {

bool RaiseLoopback() {
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strncpy(request.ifr_name, "lo", sizeof(request.ifr_name) - 1);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  return ioctl(socket.get(), SIOCSIFFLAGS, &request) == 0;
}

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  SocketAddress(const std::string& text, uint16_t port) {
    auto* const v4 = reinterpret_cast<sockaddr_in*>(&storage);
    auto* const v6 = reinterpret_cast<sockaddr_in6*>(&storage);
    if (inet_pton(AF_INET, text.c_str(), &v4->sin_addr) == 1) {
      v4->sin_family = AF_INET;
      v4->sin_port = htons(port);
      size = sizeof(*v4);
    } else {
      inet_pton(AF_INET6, text.c_str(), &v6->sin6_addr);
      v6->sin6_family = AF_INET6;
      v6->sin6_port = htons(port);
      size = sizeof(*v6);
    }
  }

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

/// A socket stays in the namespace in which it was made.
UniqueFd StreamIn(const UniqueFd* netns, int family) {
  UniqueFd made;
  std::thread([&] {
    if (netns == nullptr || setns(netns->get(), CLONE_NEWNET) == 0) {
      made.reset(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    }
  }).join();
  return made;
}

}  // namespace

UniqueFd NetnsWithLoopback() {
  UniqueFd netns;
  std::thread([&netns] {
    if (unshare(CLONE_NEWNET) == 0 && RaiseLoopback()) {
      netns.reset(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    }
  }).join();
  return netns;
}

bool AddAddress(const UniqueFd& netns, const std::string& address) {
  bool added = false;
  std::thread([&] {
    const std::string command = Format("ip address add {}/32 dev lo", address);
    added = setns(netns.get(), CLONE_NEWNET) == 0 && std::system(command.c_str()) == 0;
  }).join();
  return added;
}

std::string PathOfFd(const UniqueFd& fd) { return Format("/proc/self/fd/{}", fd.get()); }

std::pair<UniqueFd, int> ConnectIn(const UniqueFd* netns, const std::string& address,
                                   uint16_t port) {
  SocketAddress to(address, port);
  UniqueFd socket = StreamIn(netns, to.storage.ss_family);
  if (connect(socket.get(), to.get(), to.size) != 0) {
    return {UniqueFd(), errno};
  }
  return {std::move(socket), 0};
}

std::pair<UniqueFd, uint16_t> ListenIn(const UniqueFd* netns, const std::string& address,
                                       uint16_t port, int backlog) {
  SocketAddress at(address, port);
  UniqueFd socket = StreamIn(netns, at.storage.ss_family);
  const int yes = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (bind(socket.get(), at.get(), at.size) != 0 || listen(socket.get(), backlog) != 0) {
    return {};
  }
  getsockname(socket.get(), at.get(), &at.size);
  // Both families have it at the same place.
  const auto* const bound = reinterpret_cast<const sockaddr_in*>(&at.storage);
  return {std::move(socket), ntohs(bound->sin_port)};
}

UniqueFd AcceptFrom(const UniqueFd& listener) {
  return UniqueFd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
}

bool SendText(const UniqueFd& socket, const std::string& text) {
  size_t at = 0;
  while (at < text.size()) {
    const ssize_t n = send(socket.get(), text.data() + at, text.size() - at, MSG_NOSIGNAL);
    if (n < 0) {
      return false;
    }
    at += static_cast<size_t>(n);
  }
  return true;
}

std::string ReadSome(const UniqueFd& socket, size_t size) {
  std::string text(size, '\0');
  const ssize_t n = recv(socket.get(), text.data(), text.size(), MSG_WAITALL);
  text.resize(static_cast<size_t>(std::max<ssize_t>(n, 0)));
  return text;
}

std::string ReadAll(const UniqueFd& socket, int* error) {
  std::string text;
  std::array<char, 65536> part{};
  ssize_t n = 0;
  while ((n = recv(socket.get(), part.data(), part.size(), 0)) > 0) {
    text.append(part.data(), static_cast<size_t>(n));
  }
  if (error != nullptr) {
    *error = n < 0 ? errno : 0;
  }
  return text;
}

}  // namespace gantry::forward
