// SPDX-License-Identifier: Apache-2.0
#include "core/toolkit/container/channel.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include <gantry/toolkit/descriptors/unix_socket.h>

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
  const std::span<const char> bytes(reinterpret_cast<const char*>(&packet), kHeader + text);
  const auto sent = SendWithFds(channel, bytes, std::span<const int>(&fd, fd >= 0 ? 1 : 0));
  if (!sent && (sent.error().sys_errno == EPIPE || sent.error().sys_errno == ECONNRESET)) {
    return Fail(Code::kUnavailable, "tell the maker of the container: it is gone");
  }
  return sent ? Status() : FailErrno(sent.error().sys_errno, "tell the maker of the container");
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
  GANTRY_TRY(auto pair, BlockingSocketPair(SOCK_SEQPACKET));
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
  std::vector<UniqueFd> fds;
  auto received =
      RecvWithFds(channel, std::span(reinterpret_cast<char*>(&packet), sizeof(packet)), fds);
  if (!received && received.error().sys_errno != ECONNRESET) {
    return std::unexpected(std::move(received).error().Within("hear of the container"));
  }
  const size_t got = received ? received->bytes : 0;
  if (got == 0) {
    return Fail(Code::kUnavailable, "hear of the container: its process has ended");
  }
  if (got < kHeader) {
    return Fail(Code::kInternal, "hear of the container: a message of {} bytes", got);
  }
  Message out;
  if (!fds.empty()) {
    out.fd = std::move(fds.front());
  }
  out.word = static_cast<Word>(packet.word);
  out.pid = packet.pid;
  if (out.word == Word::kFailed) {
    return std::unexpected(Error{CodeOf(packet.code), packet.sys_errno,
                                 std::string(packet.text, got - kHeader), std::string()});
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
