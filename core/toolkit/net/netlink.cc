// SPDX-License-Identifier: Apache-2.0
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include <gantry/toolkit/net/netlink.h>

namespace gantry::net {
namespace {

/// The kernel makes none that is longer than 32 KiB.
constexpr size_t kBufferBytes = size_t{64} << 10;
constexpr int kDumpTries = 8;

constexpr size_t Aligned(size_t length) { return (length + 3) & ~size_t{3}; }

/// Of a message of NLMSG_ERROR or NLMSG_DONE.
Status StatusIn(std::string_view message) {
  int32_t error = 0;
  message.copy(reinterpret_cast<char*>(&error), sizeof(error));
  if (error != 0) {
    return std::unexpected(Error{CodeOfErrno(-error), -error, ErrnoName(-error), ""});
  }
  return {};
}

}  // namespace

std::string_view Attributes::Find(uint16_t type) const {
  std::string_view left = bytes_;
  rtattr one{};
  while (left.size() >= sizeof(one)) {
    left.copy(reinterpret_cast<char*>(&one), sizeof(one));
    if (one.rta_len < sizeof(one) || one.rta_len > left.size()) {
      break;
    }
    if ((one.rta_type & NLA_TYPE_MASK) == type) {
      return left.substr(sizeof(one), one.rta_len - sizeof(one));
    }
    left.remove_prefix(std::min(Aligned(one.rta_len), left.size()));
  }
  return {};
}

uint32_t Attributes::Number(uint16_t type) const {
  uint32_t number = 0;
  const std::string_view value = Find(type);
  if (value.size() == sizeof(number)) {
    value.copy(reinterpret_cast<char*>(&number), sizeof(number));
  }
  return number;
}

Result<RouteSocket> RouteSocket::In(const Netns& netns) {
  GANTRY_TRY(std::vector<UniqueFd> sockets, netns.Sockets(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE, 1));
  return RouteSocket(std::move(sockets.front()));
}

Result<RouteSocket> RouteSocket::Own() {
  UniqueFd fd(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!fd) {
    return FailErrno(errno, "make a socket");
  }
  return RouteSocket(std::move(fd));
}

Status RouteSocket::Send(uint16_t type, uint16_t flags, std::string_view message) {
  nlmsghdr header{};
  header.nlmsg_len = static_cast<uint32_t>(sizeof(header) + message.size());
  header.nlmsg_type = type;
  header.nlmsg_flags = static_cast<uint16_t>(flags | NLM_F_REQUEST);
  header.nlmsg_seq = ++sequence_;
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  bytes += message;
  bytes.resize(Aligned(bytes.size()));
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  if (sendto(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL,
             reinterpret_cast<const sockaddr*>(&kernel), sizeof(kernel)) < 0) {
    return FailErrno(errno, "ask the kernel");
  }
  return {};
}

Result<size_t> RouteSocket::ReceiveDatagram(Deadline deadline) {
  buffer_.resize(kBufferBytes);
  while (true) {
    sockaddr_nl from{};
    socklen_t from_size = sizeof(from);
    const ssize_t size =
        recvfrom(fd_.get(), buffer_.data(), buffer_.size(), MSG_DONTWAIT | MSG_TRUNC,
                 reinterpret_cast<sockaddr*>(&from), &from_size);
    if (size < 0 && errno != EAGAIN && errno != EINTR) {
      return FailErrno(errno, "hear from the kernel");
    }
    if (size > static_cast<ssize_t>(buffer_.size())) {
      return Fail(Code::kInternal, "an answer of the kernel has {} bytes", size);
    }
    // Who is root in the namespace can send here too.
    if (size >= 0 && from.nl_pid == 0) {
      return static_cast<size_t>(size);
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      return Fail(Code::kDeadlineExceeded, "the kernel has not answered in time");
    }
    pollfd readable{fd_.get(), POLLIN, 0};
    poll(&readable, 1, PollTimeout(deadline));
  }
}

Result<std::vector<RouteSocket::Answer>> RouteSocket::Receive(Deadline deadline) {
  GANTRY_TRY(const size_t size, ReceiveDatagram(deadline));
  std::vector<Answer> answers;
  std::string_view left(buffer_.data(), size);
  nlmsghdr header{};
  while (left.size() >= sizeof(header)) {
    left.copy(reinterpret_cast<char*>(&header), sizeof(header));
    if (header.nlmsg_len < sizeof(header) || header.nlmsg_len > left.size()) {
      return Fail(Code::kInternal, "an answer of the kernel is cut off");
    }
    if (header.nlmsg_seq == sequence_) {
      answers.push_back({header.nlmsg_type, header.nlmsg_flags,
                         left.substr(sizeof(header), header.nlmsg_len - sizeof(header))});
    }
    left.remove_prefix(std::min(Aligned(header.nlmsg_len), left.size()));
  }
  return answers;
}

Result<bool> RouteSocket::DumpOnce(const std::function<bool(std::string_view)>& wanted,
                                   std::vector<std::string>& messages, Deadline deadline) {
  size_t bytes = 0;
  bool consistent = true;
  while (true) {
    GANTRY_TRY(const std::vector<Answer> answers, Receive(deadline));
    for (const Answer& answer : answers) {
      consistent &= (answer.flags & NLM_F_DUMP_INTR) == 0;
      if (answer.type == NLMSG_DONE || answer.type == NLMSG_ERROR) {
        GANTRY_CHECK_OK(StatusIn(answer.message));
        return consistent;
      }
      if (wanted(answer.message)) {
        bytes += answer.message.size();
        messages.emplace_back(answer.message);
      }
    }
    if (bytes > kMaxDumpBytes) {
      return Fail(Code::kResourceExhausted, "there are more than {} bytes of them", kMaxDumpBytes);
    }
  }
}

Result<std::vector<std::string>> RouteSocket::Dump(
    uint16_t type, const std::function<bool(std::string_view)>& wanted, Deadline deadline) {
  return DumpOf(type, std::string(Aligned(sizeof(rtgenmsg)), '\0'), wanted, deadline);
}

Result<std::vector<std::string>> RouteSocket::DumpOf(
    uint16_t type, std::string_view message, const std::function<bool(std::string_view)>& wanted,
    Deadline deadline) {
  for (int tries = 0; tries < kDumpTries; ++tries) {
    std::vector<std::string> messages;
    GANTRY_CHECK_OK(Send(type, NLM_F_DUMP, message));
    GANTRY_TRY(const bool consistent, DumpOnce(wanted, messages, deadline));
    if (consistent) {
      return messages;
    }
  }
  return Fail(Code::kAborted, "they change all the time");
}

Status RouteSocket::Change(uint16_t type, uint16_t flags, std::string_view message,
                           Deadline deadline) {
  GANTRY_CHECK_OK(Send(type, static_cast<uint16_t>(flags | NLM_F_ACK), message));
  while (true) {
    GANTRY_TRY(const std::vector<Answer> answers, Receive(deadline));
    for (const Answer& answer : answers) {
      if (answer.type == NLMSG_ERROR) {
        return StatusIn(answer.message);
      }
    }
  }
}

}  // namespace gantry::net
