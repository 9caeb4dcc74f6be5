// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/vsock/host_socket.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>

#include "plugins/vmm/vsock/greeting.h"

namespace gantry::vmm::vsock {
namespace {

Moved MovedBy(ssize_t result) {
  if (result > 0) {
    return {.bytes = static_cast<size_t>(result)};
  }
  return {.step = result < 0 && errno == EAGAIN ? Step::kLater : Step::kOver};
}

template <class Call>
ssize_t Uninterrupted(Call call) {
  ssize_t result = call();
  while (result < 0 && errno == EINTR) {
    result = call();
  }
  return result;
}

}  // namespace

Step Dial(const std::string& name, uint32_t port, UniqueFd& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  constexpr size_t kDigits = 10;
  if (name.size() + 1 + kDigits >= sizeof(address.sun_path)) {
    return Step::kOver;
  }
  memcpy(address.sun_path, name.data(), name.size());
  char* const digits = address.sun_path + name.size() + 1;
  digits[-1] = '_';
  std::to_chars(digits, digits + kDigits, port);
  socket.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) {
    return Step::kOver;
  }
  // It connects, or says at once why not. Source: unix(7).
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    return Step::kDone;
  }
  const Step step = errno == EAGAIN ? Step::kLater : Step::kOver;
  socket.reset();
  return step;
}

Step ReadGreeting(int socket, uint32_t& port) {
  std::array<char, kMaxGreeting> bytes{};
  // Looked at first: what stands behind the line stays where it is.
  const ssize_t seen = Uninterrupted(
      [&] { return recv(socket, bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT); });
  if (seen <= 0) {
    return MovedBy(seen).step;
  }
  const std::string_view text(bytes.data(), static_cast<size_t>(seen));
  const size_t end = text.find('\n');
  if (end == std::string_view::npos) {
    return MayBecomeGreeting(text) ? Step::kLater : Step::kOver;
  }
  const auto parsed = ParseGreeting(text.substr(0, end));
  if (!parsed ||
      recv(socket, bytes.data(), end + 1, MSG_DONTWAIT) != static_cast<ssize_t>(end + 1)) {
    return Step::kOver;
  }
  port = *parsed;
  return Step::kDone;
}

bool AnswerGreeting(int socket, uint32_t port) {
  std::array<char, 16> text{'O', 'K', ' '};
  char* const end = std::to_chars(text.data() + 3, text.data() + text.size() - 1, port).ptr;
  *end = '\n';
  const auto size = static_cast<size_t>(end + 1 - text.data());
  // Nothing was written to it before, so that it takes all of these.
  return send(socket, text.data(), size, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(size);
}

Moved SendPieces(int socket, std::span<const iovec> pieces) {
  msghdr message{};
  // sendmsg does not write to it.
  message.msg_iov = const_cast<iovec*>(pieces.data());
  message.msg_iovlen = pieces.size();
  return MovedBy(
      Uninterrupted([&] { return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT); }));
}

Moved ReceivePieces(int socket, std::span<iovec> pieces) {
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  return MovedBy(Uninterrupted([&] { return recvmsg(socket, &message, MSG_DONTWAIT); }));
}

}  // namespace gantry::vmm::vsock
