// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/remote/message.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>

namespace gantry::remote {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxBody = size_t{64} << 20;
constexpr size_t kMaxFds = 8;

Status WaitFor(int socket, short events, Clock::time_point deadline) {
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd one{socket, events, 0};
    const int ready = poll(&one, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    if (ready > 0) {
      return {};
    }
    if (ready == 0) {
      return Fail(Code::kDeadlineExceeded, "talk to the sandbox: no answer in time");
    }
    if (errno != EINTR) {
      return FailErrno(errno, "talk to the sandbox: poll");
    }
  }
}

/// One sendmsg(2) that does not block.
Result<size_t> SendSome(int socket, std::string_view bytes, const std::vector<int>& fds) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxFds * sizeof(int))> control{};
  iovec data{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    memcpy(CMSG_DATA(part), fds.data(), fds.size() * sizeof(int));
  }
  const ssize_t sent = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0) {
    return errno == EAGAIN || errno == EINTR ? Result<size_t>(0)
                                             : FailErrno(errno, "talk to the sandbox: send");
  }
  return static_cast<size_t>(sent);
}

/// One recvmsg(2) that does not block; 0 where there is nothing yet.
Result<size_t> ReceiveSome(int socket, std::span<char> into, std::vector<UniqueFd>& fds) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxFds * sizeof(int))> control{};
  iovec data{into.data(), into.size()};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (got < 0) {
    return errno == EAGAIN || errno == EINTR ? Result<size_t>(0)
                                             : FailErrno(errno, "talk to the sandbox: receive");
  }
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    for (size_t at = 0;
         part->cmsg_type == SCM_RIGHTS && CMSG_LEN(at + sizeof(int)) <= part->cmsg_len;
         at += sizeof(int)) {
      int fd = -1;
      memcpy(&fd, CMSG_DATA(part) + at, sizeof(fd));
      fds.emplace_back(fd);
    }
  }
  if (got == 0) {
    return Fail(Code::kUnavailable, "talk to the sandbox: the connection has ended");
  }
  return static_cast<size_t>(got);
}

Status ReceiveAll(int socket, std::span<char> into, std::vector<UniqueFd>& fds,
                  Clock::time_point deadline) {
  while (!into.empty()) {
    GANTRY_CHECK_OK(WaitFor(socket, POLLIN, deadline));
    GANTRY_TRY(const size_t got, ReceiveSome(socket, into, fds));
    into = into.subspan(got);
  }
  return {};
}

}  // namespace

Status SendMessage(int socket, const Json& body, const std::vector<int>& fds,
                   std::chrono::milliseconds limit) {
  const Clock::time_point deadline = Clock::now() + limit;
  const std::string text = body.dump(-1, ' ', false, Json::error_handler_t::replace);
  const auto length = static_cast<uint32_t>(text.size());
  std::string bytes(sizeof(length), '\0');
  memcpy(bytes.data(), &length, sizeof(length));
  bytes += text;
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const bool first = rest.size() == bytes.size();
    GANTRY_TRY(const size_t sent, SendSome(socket, rest, first ? fds : std::vector<int>()));
    rest.remove_prefix(sent);
    if (!rest.empty()) {
      GANTRY_CHECK_OK(WaitFor(socket, POLLOUT, deadline));
    }
  }
  return {};
}

Result<Message> ReceiveMessage(int socket, std::chrono::milliseconds limit) {
  const Clock::time_point deadline = Clock::now() + limit;
  Message message;
  std::array<char, sizeof(uint32_t)> header{};
  GANTRY_CHECK_OK(ReceiveAll(socket, header, message.fds, deadline));
  uint32_t length = 0;
  memcpy(&length, header.data(), sizeof(length));
  if (length > kMaxBody) {
    return Fail(Code::kInvalidArgument, "talk to the sandbox: a message of {} bytes", length);
  }
  std::string text(length, '\0');
  GANTRY_CHECK_OK(ReceiveAll(socket, text, message.fds, deadline));
  message.body = Json::parse(text, nullptr, false);
  if (!message.body.is_object()) {
    return Fail(Code::kInternal, "talk to the sandbox: what came is no JSON object");
  }
  return message;
}

Result<std::pair<UniqueFd, UniqueFd>> MakePair() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return FailErrno(errno, "make a pair of sockets");
  }
  return std::pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

Result<UniqueFd> PassThrough(int door) {
  GANTRY_TRY(auto pair, MakePair());
  const Clock::time_point deadline = Clock::now() + std::chrono::seconds(10);
  size_t sent = 0;
  while (sent == 0) {
    GANTRY_TRY(sent, SendSome(door, "c", {pair.second.get()}));
    if (sent == 0) {
      GANTRY_CHECK_OK(WaitFor(door, POLLOUT, deadline));
    }
  }
  return std::move(pair.first);
}

Result<UniqueFd> ReceiveConnection(int door) {
  std::array<char, 1> byte{};
  std::vector<UniqueFd> fds;
  GANTRY_TRY(const size_t got, ReceiveSome(door, byte, fds));
  if (got == 0 || fds.empty()) {
    return Fail(Code::kNotFound, "talk to the engine: no connection came");
  }
  return std::move(fds.front());
}

Json ToJson(const Error& error) {
  return {{"code", static_cast<int>(error.code)}, {"message", error.message}};
}

Status CheckAnswer(const Json& body) {
  const int code = body.value("code", 0);
  if (code == 0) {
    return {};
  }
  return std::unexpected(
      Error{static_cast<Code>(code), 0, body.value("message", std::string()), std::string()});
}

}  // namespace gantry::remote
