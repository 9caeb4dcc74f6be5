// SPDX-License-Identifier: Apache-2.0
#include "tests/performance/http_clients.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <future>
#include <string_view>
#include <utility>

namespace gantry::bench {
namespace {

constexpr int kSilenceMs = 10000;
constexpr std::string_view kRequest = "GET / HTTP/1.1\r\nHost: bench\r\n\r\n";

Result<UniqueFd> ConnectTo(uint16_t port) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  // A request and its answer are small: none waits for another.
  const int on = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return FailErrno(errno, "connect to port {} in the container", port);
  }
  return socket;
}

/// By a thread of its own, which stays in that namespace.
Result<std::vector<UniqueFd>> ConnectIn(pid_t pid, uint16_t port, size_t count) {
  const std::string path = "/proc/" + std::to_string(pid) + "/ns/net";
  const UniqueFd network(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!network || setns(network.get(), CLONE_NEWNET) != 0) {
    return FailErrno(errno, "enter the network namespace '{}'", path);
  }
  std::vector<UniqueFd> sockets;
  for (size_t i = 0; i < count; ++i) {
    GANTRY_TRY(UniqueFd socket, ConnectTo(port));
    sockets.push_back(std::move(socket));
  }
  return sockets;
}

/// In pieces, of which the last is empty; or with its length, of a body that is one line.
bool IsWhole(const std::string& answer) {
  const size_t head = answer.find("\r\n\r\n");
  if (head == std::string::npos) {
    return false;
  }
  const bool pieces = answer.substr(0, head).contains("chunked");
  return answer.size() > head + 4 && answer.ends_with(pieces ? "\r\n0\r\n\r\n" : "\n");
}

}  // namespace

HttpClients::HttpClients(std::vector<UniqueFd> sockets) : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  for (UniqueFd& socket : sockets) {
    epoll_event event{.events = EPOLLIN, .data = {.u64 = connections_.size()}};
    epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket.get(), &event);
    connections_.push_back({.socket = std::move(socket)});
  }
}

Result<HttpClients> HttpClients::Connect(pid_t pid, uint16_t port, size_t count) {
  auto sockets = std::async(std::launch::async, ConnectIn, pid, port, count);
  GANTRY_TRY(std::vector<UniqueFd> connected, sockets.get());
  return HttpClients(std::move(connected));
}

Result<std::vector<double>> HttpClients::Turn(int requests, const std::string& text) {
  std::vector<double> times;
  int sent = 0;
  for (Connection& connection : connections_) {
    GANTRY_CHECK_OK(Send(connection));
    ++sent;
  }
  std::array<epoll_event, 64> events;
  for (int waiting = sent; waiting > 0;) {
    const int ready = epoll_wait(epoll_.get(), events.data(), events.size(), kSilenceMs);
    if (ready <= 0) {
      return Fail(Code::kDeadlineExceeded, "send a request: no answer");
    }
    for (int i = 0; i < ready; ++i) {
      Connection& connection = connections_[events.at(static_cast<size_t>(i)).data.u64];
      GANTRY_TRY(const bool answered, Receive(connection, text));
      if (!answered) {
        continue;
      }
      times.push_back(MillisecondsSince(connection.sent) * 1000);
      if (sent < requests) {
        GANTRY_CHECK_OK(Send(connection));
        ++sent;
      } else {
        --waiting;
      }
    }
  }
  return times;
}

Status HttpClients::Send(Connection& connection) {
  connection.answer.clear();
  connection.sent = Clock::now();
  const ssize_t sent =
      send(connection.socket.get(), kRequest.data(), kRequest.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(kRequest.size())) {
    return FailErrno(sent < 0 ? errno : EIO, "send a request");
  }
  return {};
}

Result<bool> HttpClients::Receive(Connection& connection, const std::string& text) {
  std::array<char, 4096> buffer;
  const ssize_t got = recv(connection.socket.get(), buffer.data(), buffer.size(), 0);
  if (got <= 0) {
    return FailErrno(got < 0 ? errno : ECONNRESET, "read an answer");
  }
  std::string& answer = connection.answer;
  answer.append(buffer.data(), static_cast<size_t>(got));
  if (!IsWhole(answer)) {
    return false;
  }
  if (!answer.starts_with("HTTP/1.1 200 ") || !answer.contains(text)) {
    return Fail(Code::kInternal, "read an answer: '{}'", answer);
  }
  return true;
}

}  // namespace gantry::bench
