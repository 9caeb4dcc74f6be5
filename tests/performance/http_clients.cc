// SPDX-License-Identifier: Apache-2.0
#include "tests/performance/http_clients.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>

#include <cerrno>
#include <future>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <gantry/unique_fd.h>

namespace gantry::bench {
namespace {

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

class HttpTalk final : public Talk {
 public:
  explicit HttpTalk(std::string text) : text_(std::move(text)) {}

  Result<std::string> Ask() override {
    answer_.clear();
    return std::string(kRequest);
  }

  Result<bool> Hear(std::string_view bytes) override {
    answer_.append(bytes);
    if (!IsWhole(answer_)) {
      return false;
    }
    if (!answer_.starts_with("HTTP/1.1 200 ") || !answer_.contains(text_)) {
      return Fail(Code::kInternal, "read an answer: '{}'", answer_);
    }
    return true;
  }

 private:
  const std::string text_;
  std::string answer_;
};

}  // namespace

Result<Callers> ConnectHttp(pid_t pid, uint16_t port, size_t count, const std::string& text) {
  auto connecting = std::async(std::launch::async, ConnectIn, pid, port, count);
  GANTRY_TRY(std::vector<UniqueFd> sockets, connecting.get());
  Callers callers;
  for (UniqueFd& socket : sockets) {
    callers.Add(std::move(socket), std::make_unique<HttpTalk>(text));
  }
  return callers;
}

}  // namespace gantry::bench
