// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/program/listen.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <limits>

#include <gantry/number.h>

namespace gantry::wasm {
namespace {

struct Place {
  sockaddr_storage address{};
  socklen_t size = 0;
};

// Several connections may come at once; the kernel takes no more than net.core.somaxconn.
constexpr int kBacklog = 1024;

bool IsIpv4(const std::string& host, uint16_t port, Place& out) {
  auto& address = reinterpret_cast<sockaddr_in&>(out.address);
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  out.size = sizeof(address);
  return ::inet_pton(AF_INET, host.c_str(), &address.sin_addr) == 1;
}

bool IsIpv6(const std::string& host, uint16_t port, Place& out) {
  out = {};
  auto& address = reinterpret_cast<sockaddr_in6&>(out.address);
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  out.size = sizeof(address);
  return host.size() > 2 && host.front() == '[' && host.back() == ']' &&
         ::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &address.sin6_addr) == 1;
}

Result<Place> PlaceOf(const std::string& text) {
  const size_t colon = text.rfind(':');
  const std::string host = colon == std::string::npos ? std::string() : text.substr(0, colon);
  const auto number = ParseNumber(
      colon == std::string::npos ? std::string_view() : std::string_view(text).substr(colon + 1));
  Place place;
  if (!number || *number < 1 || *number > std::numeric_limits<uint16_t>::max() ||
      (!IsIpv4(host, static_cast<uint16_t>(*number), place) &&
       !IsIpv6(host, static_cast<uint16_t>(*number), place))) {
    return Fail(Code::kInvalidArgument,
                "listen at '{}': not ADDRESS:PORT, as 0.0.0.0:8080 and [::]:8080 are", text);
  }
  return place;
}

}  // namespace

Result<UniqueFd> Listen(const std::string& address) {
  GANTRY_TRY(const Place place, PlaceOf(address));
  UniqueFd fd(
      ::socket(place.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  if (!fd) {
    return FailErrno(errno, "listen at '{}': make a socket", address);
  }
  // What is left of connections of a container before this one does not keep the port.
  const int yes = 1;
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0) {
    return FailErrno(errno, "listen at '{}'", address);
  }
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&place.address), place.size) != 0 ||
      ::listen(fd.get(), kBacklog) != 0) {
    return errno == EADDRINUSE
               ? Fail(Code::kFailedPrecondition,
                      "listen at '{}': another one listens there in the container's network",
                      address)
               : FailErrno(errno, "listen at '{}'", address);
  }
  return fd;
}

}  // namespace gantry::wasm
