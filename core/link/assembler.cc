// SPDX-License-Identifier: Apache-2.0
//
// Bytes and descriptors of the socket, put together again as messages. The descriptors of one
// message come with its first byte, and one read never has those of two messages; so sets of them
// are queued as they are read and handed out to the messages that announce some. Where the kernel
// could not deliver them (no descriptors left) an empty set stands for them, and the message says
// that they are lost.
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "core/link/channel.h"

namespace gantry::link {
namespace {

/// Enough for nearly all messages in one read, small enough for the stack.
constexpr size_t kReadBytes = 16384;

struct Header {
  uint32_t length;
  uint16_t type;
  uint16_t fds;
};

uint32_t LittleEndian(const char* bytes, int count) {
  uint32_t value = 0;
  for (int i = 0; i < count; ++i) {
    value |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[i])) << (8 * i);
  }
  return value;
}

Header DecodeHeader(const char* bytes) {
  return Header{LittleEndian(bytes, 4), static_cast<uint16_t>(LittleEndian(bytes + 4, 2)),
                static_cast<uint16_t>(LittleEndian(bytes + 6, 2))};
}

/// The descriptors of one read; nothing when it brought none.
std::optional<std::vector<UniqueFd>> TakeFds(const msghdr& message) {
  std::vector<UniqueFd> fds;
  bool any = (message.msg_flags & MSG_CTRUNC) != 0;
  for (const cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(const_cast<msghdr*>(&message), const_cast<cmsghdr*>(part))) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    any = true;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      fds.emplace_back(fd);
    }
  }
  return any ? std::optional(std::move(fds)) : std::nullopt;
}

}  // namespace

std::string EncodeHeader(Type type, size_t body_bytes, size_t fds) {
  std::string header(kHeaderBytes, '\0');
  const auto put = [&](size_t at, size_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) {
      header[at + i] = static_cast<char>((value >> (8 * i)) & 0xff);
    }
  };
  put(0, body_bytes, 4);
  put(4, static_cast<size_t>(type), 2);
  put(6, fds, 2);
  return header;
}

Result<bool> Assembler::ReadFrom(int socket) {
  // Both are written by the kernel, and read as far as it says.
  std::array<char, kReadBytes> chunk;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  // Room for more than any message carries: what does not fit would be dropped.
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init)
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * 4 * kMaxFds)> control;
  iovec data{chunk.data(), chunk.size()};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) {
    if (errno == EAGAIN || errno == EINTR) {
      return errno == EINTR;
    }
    return std::unexpected(
        Error{Code::kUnavailable, errno, "read the link: " + ErrnoName(errno), {}});
  }
  if (auto fds = TakeFds(message)) {
    sets_.push_back(std::move(*fds));
  }
  if (got == 0) {
    return Fail(Code::kUnavailable, "read the link: the other side has closed it");
  }
  buffer_.append(chunk.data(), static_cast<size_t>(got));
  return true;
}

Result<std::optional<Message>> Assembler::Next() {
  const size_t have = buffer_.size() - begin_;
  if (have < kHeaderBytes) {
    return std::optional<Message>();
  }
  const Header header = DecodeHeader(buffer_.data() + begin_);
  if (header.length > kMaxBody || header.fds > kMaxFds) {
    return Fail(Code::kInvalidArgument, "read the link: a message of {} bytes and {} descriptors",
                header.length, header.fds);
  }
  if (have - kHeaderBytes < header.length) {
    return std::optional<Message>();
  }
  Message message;
  message.type = static_cast<Type>(header.type);
  message.body = buffer_.substr(begin_ + kHeaderBytes, header.length);
  begin_ += kHeaderBytes + header.length;
  if (header.fds > 0) {
    if (!sets_.empty()) {
      message.fds = std::move(sets_.front());
      sets_.pop_front();
    }
    message.fds_lost = message.fds.size() != header.fds;
  }
  if (begin_ == buffer_.size()) {
    std::string().swap(buffer_);
    begin_ = 0;
  } else if (begin_ > kMaxBody) {
    buffer_.erase(0, begin_);
    begin_ = 0;
  }
  return std::optional(std::move(message));
}

}  // namespace gantry::link
