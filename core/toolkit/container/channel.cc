// SPDX-License-Identifier: Apache-2.0
#include "core/toolkit/container/channel.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/toolkit/container/descriptors.h"

namespace gantry::container {
namespace {

constexpr size_t kMaxText = 2048;

struct Packet {
  int32_t word;
  int32_t pid;
  int32_t code;
  int32_t sys_errno;
  char text[kMaxText];
};

constexpr size_t kHeader = offsetof(Packet, text);

Status SendPacket(int channel, Packet& packet, size_t text, int fd) {
  iovec part{&packet, kHeader + text};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &fd, sizeof(int));
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(channel, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) {
    return errno == EPIPE || errno == ECONNRESET
               ? Fail(Code::kUnavailable, "tell the maker of the container: it is gone")
               : FailErrno(errno, "tell the maker of the container");
  }
  return {};
}

// The descriptors that came with a message: the first; others are closed.
UniqueFd TakeDescriptor(msghdr& message) {
  UniqueFd first;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      UniqueFd taken(fd);
      if (!first) {
        first = std::move(taken);
      }
    }
  }
  return first;
}

// A code of ours, whatever the bytes say.
Code CodeOf(int32_t number) {
  return number > static_cast<int32_t>(Code::kOk) &&
                 number <= static_cast<int32_t>(Code::kUnauthenticated)
             ? static_cast<Code>(number)
             : Code::kInternal;
}

}  // namespace

Result<std::pair<UniqueFd, UniqueFd>> MakeChannel() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return FailErrno(errno, "make a socket pair");
  }
  std::pair<UniqueFd, UniqueFd> pair{UniqueFd(ends[0]), UniqueFd(ends[1])};
  GANTRY_TRY(pair.first, AboveStreams(std::move(pair.first)));
  GANTRY_TRY(pair.second, AboveStreams(std::move(pair.second)));
  return pair;
}

Status Send(int channel, Word word, int fd, pid_t pid) {
  Packet packet{};
  packet.word = static_cast<int32_t>(word);
  packet.pid = pid;
  return SendPacket(channel, packet, 0, fd);
}

Status SendError(int channel, const Error& error) {
  Packet packet{};
  packet.word = static_cast<int32_t>(Word::kFailed);
  packet.code = static_cast<int32_t>(error.code);
  packet.sys_errno = error.sys_errno;
  const size_t length = std::min(error.message.size(), kMaxText);
  std::memcpy(packet.text, error.message.data(), length);
  return SendPacket(channel, packet, length, -1);
}

Result<Message> Receive(int channel) {
  Packet packet{};
  iovec part{&packet, sizeof(packet)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t got = 0;
  do {
    got = ::recvmsg(channel, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && errno != ECONNRESET) {
    return FailErrno(errno, "hear of the container");
  }
  if (got <= 0) {
    return Fail(Code::kUnavailable, "hear of the container: its process has ended");
  }
  Message out;
  out.fd = TakeDescriptor(message);
  if (static_cast<size_t>(got) < kHeader) {
    return Fail(Code::kInternal, "hear of the container: a message of {} bytes", got);
  }
  out.word = static_cast<Word>(packet.word);
  out.pid = packet.pid;
  if (out.word == Word::kFailed) {
    return std::unexpected(Error{CodeOf(packet.code), packet.sys_errno,
                                 std::string(packet.text, static_cast<size_t>(got) - kHeader),
                                 std::string()});
  }
  return out;
}

Result<Message> Await(int channel, Word word) {
  GANTRY_TRY(Message message, Receive(channel));
  if (message.word != word) {
    return Fail(Code::kInternal, "hear of the container: message {} in place of {}",
                static_cast<int>(message.word), static_cast<int>(word));
  }
  return message;
}

}  // namespace gantry::container
