// SPDX-License-Identifier: Apache-2.0
#include "core/ctl/scrape.h"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <string_view>

#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/unique_fd.h>

#include "core/config/listen_address.h"
#include "core/os/poll.h"

namespace gantry::ctl {
namespace {

constexpr std::string_view kQuestion = "GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n";
constexpr size_t kMostBytes = size_t{64} << 20;

template <class Address>
Result<UniqueFd> ConnectPort(const Address& address) {
  const auto* const generic = reinterpret_cast<const sockaddr*>(&address);
  UniqueFd socket(::socket(generic->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket || connect(socket.get(), generic, sizeof(address)) != 0) {
    return FailErrno(errno, "connect");
  }
  return socket;
}

Result<UniqueFd> Connect(const config::ListenAddress& where) {
  if (!where.path.empty()) {
    return ConnectUnix(where.path);
  }
  if (where.v6) {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(where.port);
    address.sin6_addr = in6addr_loopback;
    return ConnectPort(address);
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(where.port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return ConnectPort(address);
}

Result<std::string> ReadToEnd(int socket, std::chrono::milliseconds limit) {
  std::string answer;
  std::array<char, 65536> part{};
  while (answer.size() < kMostBytes) {
    GANTRY_TRY(const uint32_t ready, os::Poll(socket, EPOLLIN, limit));
    if (ready == 0) {
      return Fail(Code::kDeadlineExceeded, "no answer within {} ms", limit.count());
    }
    const ssize_t got = recv(socket, part.data(), part.size(), MSG_DONTWAIT);
    if (got == 0) {
      break;
    }
    if (got < 0 && errno != EAGAIN && errno != EINTR) {
      return FailErrno(errno, "read the answer");
    }
    answer.append(part.data(), got < 0 ? 0 : static_cast<size_t>(got));
  }
  return answer;
}

}  // namespace

Result<std::string> ScrapeMetrics(const std::string& address, std::chrono::milliseconds limit) {
  const auto where = config::ParseListenAddress(address);
  if (!where) {
    return Fail(Code::kInvalidArgument, "scrape '{}': expected {}", address,
                config::kListenAddressForms);
  }
  auto socket = Connect(*where);
  if (!socket) {
    return std::unexpected(Error(socket.error()).Within("scrape '" + address + "'"));
  }
  if (send(socket->get(), kQuestion.data(), kQuestion.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(kQuestion.size())) {
    return FailErrno(errno, "scrape '{}': ask", address);
  }
  auto answer = ReadToEnd(socket->get(), limit);
  if (!answer) {
    return std::unexpected(Error(answer.error()).Within("scrape '" + address + "'"));
  }
  const size_t body = answer->find("\r\n\r\n");
  const std::string status = answer->substr(0, answer->find('\r'));
  if (body == std::string::npos || status.find(" 200 ") == std::string::npos) {
    return Fail(Code::kUnavailable, "scrape '{}': it answers '{}'", address, status.substr(0, 80));
  }
  return answer->substr(body + 4);
}

}  // namespace gantry::ctl
