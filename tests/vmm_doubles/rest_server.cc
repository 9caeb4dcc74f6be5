// SPDX-License-Identifier: Apache-2.0
#include "tests/vmm_doubles/rest_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include <gantry/toolkit/descriptors/pipe.h>
#include <gantry/toolkit/descriptors/unix_socket.h>

namespace gantry::test {
namespace {

constexpr size_t kRead = size_t{64} << 10;

void SendAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0) {
      return;
    }
    text.remove_prefix(static_cast<size_t>(sent));
  }
}

/// The number behind "Content-Length: "; 0: there is none.
size_t LengthIn(const std::string& head) {
  constexpr std::string_view kName = "Content-Length: ";
  const size_t at = head.find(kName);
  return at == std::string::npos ? 0 : std::stoul(head.substr(at + kName.size()));
}

}  // namespace

RestServer::RestServer(UniqueFd listener, Handler handler)
    : handler_(std::move(handler)), listener_(std::move(listener)) {
  SetNonblocking(listener_.get(), false).value();
  acceptor_ = std::thread([this] { Accept(); });
}

RestServer::RestServer(const std::string& path, Handler handler)
    : RestServer(ListenUnix(path).value(), std::move(handler)) {}

RestServer::~RestServer() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    shutdown(listener_.get(), SHUT_RDWR);
    for (const UniqueFd& connection : connections_) {
      shutdown(connection.get(), SHUT_RDWR);
    }
  }
  acceptor_.join();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

void RestServer::FailNext(const std::string& target, RestFault fault, std::string bytes) {
  const std::lock_guard lock(mutex_);
  wrong_.push_back({target, fault, std::move(bytes)});
}

std::vector<std::string> RestServer::Requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

int RestServer::MostAtOnce() const {
  const std::lock_guard lock(mutex_);
  return most_at_once_;
}

void RestServer::Accept() {
  while (true) {
    UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const std::lock_guard lock(mutex_);
    if (!fd || ended_) {
      return;
    }
    const int number = fd.get();
    connections_.push_back(std::move(fd));
    threads_.emplace_back([this, number] { Serve(number); });
  }
}

bool RestServer::ReadCall(int fd, RestCall& call) {
  std::string text;
  std::vector<char> buffer(kRead);
  size_t whole = std::string::npos;
  while (text.size() < whole) {
    const auto got = RecvWithFds(fd, buffer, call.fds);
    if (!got || got->bytes == 0) {
      return false;
    }
    text.append(buffer.data(), got->bytes);
    const size_t end = text.find("\r\n\r\n");
    if (whole == std::string::npos && end != std::string::npos) {
      whole = end + 4 + LengthIn(text.substr(0, end));
    }
  }
  const size_t space = text.find(' ');
  call.method = text.substr(0, space);
  call.target = text.substr(space + 1, text.find(' ', space + 1) - space - 1);
  call.body = text.substr(text.find("\r\n\r\n") + 4);
  return true;
}

std::string RestServer::TextOf(const RestReply& reply) {
  std::string text = "HTTP/1.1 " + std::to_string(reply.status) +
                     " \r\nServer: a double\r\nConnection: keep-alive\r\n";
  if (reply.status != 204) {
    text +=
        "Content-Type: application/json\r\nContent-Length: " + std::to_string(reply.body.size()) +
        "\r\n";
  }
  return text + "\r\n" + reply.body;
}

void RestServer::Answer(int fd, const RestCall& call, const RestReply& reply) {
  std::string text = TextOf(reply);
  Wrong wrong{"", RestFault::kBytes, text};
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find_if(
        wrong_, [&](const Wrong& one) { return call.target.ends_with(one.target); });
    if (found != wrong_.end()) {
      wrong = *found;
      wrong_.erase(found);
    }
    --at_once_;
  }
  switch (wrong.fault) {
    case RestFault::kHang: {
      // Until the server or the client ends it.
      char byte = 0;
      while (recv(fd, &byte, 1, 0) > 0) {
      }
      return;
    }
    case RestFault::kDrop:
      shutdown(fd, SHUT_RDWR);
      return;
    case RestFault::kHalf:
      SendAll(fd, std::string_view(text).substr(0, text.size() / 2));
      shutdown(fd, SHUT_RDWR);
      return;
    case RestFault::kPiecemeal:
      for (const char& one : text) {
        SendAll(fd, {&one, 1});
      }
      return;
    case RestFault::kBytes:
      SendAll(fd, wrong.bytes);
      return;
  }
}

void RestServer::Serve(int fd) {
  RestCall call;
  while (ReadCall(fd, call)) {
    {
      const std::lock_guard lock(mutex_);
      most_at_once_ = std::max(most_at_once_, ++at_once_);
      requests_.push_back(call.method + " " + call.target +
                          (call.body.empty() ? "" : " " + call.body));
    }
    const RestReply reply = handler_(call);
    Answer(fd, call, reply);
    if (reply.then) {
      reply.then();
    }
    call = {};
  }
  shutdown(fd, SHUT_RDWR);
}

}  // namespace gantry::test
