// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/channel_socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

namespace gantry::e2e {
namespace {

constexpr std::string_view kScheme = "http://";
constexpr std::string_view kEndOfHeaders = "\r\n\r\n";

// Source: RFC 6455, section 5.2.
constexpr char kWholeBinaryMessage = '\x82';
constexpr uint8_t kOpcode = 0x0f;
constexpr uint8_t kText = 1;
constexpr uint8_t kBinary = 2;
constexpr uint8_t kClose = 8;
constexpr uint8_t kMasked = 0x80;
constexpr size_t kLengthIn2Bytes = 126;
constexpr size_t kLengthIn8Bytes = 127;
constexpr size_t kLargestSent = 32768;

Result<UniqueFd> Connect(const std::string& host) {
  const size_t colon = host.rfind(':');
  uint16_t port = 0;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  if (colon == std::string::npos ||
      std::from_chars(host.data() + colon + 1, host.data() + host.size(), port).ec != std::errc() ||
      inet_pton(AF_INET, host.substr(0, colon).c_str(), &address.sin_addr) != 1) {
    return Fail(Code::kInvalidArgument, "no address and port: '{}'", host);
  }
  address.sin_port = htons(port);
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // Of this host: connected or refused at once.
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return FailErrno(errno, "connect to '{}'", host);
  }
  return fd;
}

/// A number in network order.
size_t Number(std::string_view bytes) {
  size_t number = 0;
  for (const char byte : bytes) {
    number = number << 8 | static_cast<uint8_t>(byte);
  }
  return number;
}

}  // namespace

Result<ChannelSocket> ChannelSocket::Open(const std::string& url) {
  const size_t slash = url.find('/', kScheme.size());
  if (!url.starts_with(kScheme) || slash == std::string::npos) {
    return Fail(Code::kInvalidArgument, "no URL of a stream: '{}'", url);
  }
  const std::string host = url.substr(kScheme.size(), slash - kScheme.size());
  GANTRY_TRY(UniqueFd fd, Connect(host));
  ChannelSocket opened(std::move(fd));
  GANTRY_CHECK_OK(opened.Upgrade(host, url.substr(slash)));
  return opened;
}

Status ChannelSocket::Upgrade(const std::string& host, const std::string& path) {
  out_ = "GET " + path + " HTTP/1.1\r\nHost: " + host +
         "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
         "Sec-WebSocket-Key: Z2FudHJ5LXRlc3RzLTAwMQ==\r\n"
         "Sec-WebSocket-Protocol: v4.channel.k8s.io\r\n\r\n";
  ReadWhile([this] { return in_.contains(kEndOfHeaders); });
  if (!in_.starts_with("HTTP/1.1 101 ") || !in_.contains(kEndOfHeaders)) {
    return Fail(Code::kUnavailable, "open the stream '{}': {}", path, in_);
  }
  in_.erase(0, in_.find(kEndOfHeaders) + kEndOfHeaders.size());
  upgraded_ = true;
  while (TakeMessage()) {
  }
  return {};
}

// A client has to mask what it sends; a mask of zeros leaves it as it is.
void ChannelSocket::Send(size_t channel, std::string_view data) {
  do {
    const std::string_view part = data.substr(0, kLargestSent);
    const size_t length = part.size() + 1;
    out_ += kWholeBinaryMessage;
    if (length < kLengthIn2Bytes) {
      out_ += static_cast<char>(kMasked | length);
    } else {
      out_ += static_cast<char>(kMasked | kLengthIn2Bytes);
      out_ += static_cast<char>(length >> 8);
      out_ += static_cast<char>(length & 0xff);
    }
    out_.append(4, '\0');
    out_ += static_cast<char>(channel);
    out_ += part;
    data.remove_prefix(part.size());
  } while (!data.empty());
  Write();
}

/// False when there is no whole message.
bool ChannelSocket::TakeMessage() {
  if (in_.size() < 2) {
    return false;
  }
  size_t header = 2;
  size_t length = static_cast<uint8_t>(in_[1]);
  if (length >= kLengthIn2Bytes) {
    const size_t more = length == kLengthIn8Bytes ? 8 : 2;
    header += more;
    length = in_.size() < header ? 0 : Number(std::string_view(in_).substr(2, more));
  }
  if (in_.size() < header || in_.size() - header < length) {
    return false;
  }
  const uint8_t opcode = static_cast<uint8_t>(in_[0]) & kOpcode;
  if (opcode == kClose) {
    fd_.reset();
  } else if ((opcode == kText || opcode == kBinary) && length > 0) {
    const auto channel = static_cast<uint8_t>(in_[header]);
    received_.at(channel).append(in_, header + 1, length - 1);
  }
  in_.erase(0, header + length);
  return true;
}

void ChannelSocket::Read() {
  std::array<char, 65536> buffer{};
  const ssize_t count = recv(fd_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (count > 0) {
    in_.append(buffer.data(), static_cast<size_t>(count));
  } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
    fd_.reset();
  }
  while (upgraded_ && TakeMessage()) {
  }
}

void ChannelSocket::Write() {
  const ssize_t count = send(fd_.get(), out_.data(), out_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (count > 0) {
    out_.erase(0, static_cast<size_t>(count));
  } else if (count < 0 && errno != EAGAIN && errno != EINTR) {
    out_.clear();  // It hung up; what it said before is still to be read.
  }
}

// One turn; false when nothing can come any more.
bool ChannelSocket::PumpOnce(Clock::time_point until) {
  const auto left = std::chrono::duration_cast<Duration>(until - Clock::now()).count();
  if (!fd_ || left <= 0) {
    return false;
  }
  pollfd polled{fd_.get(), static_cast<short>(out_.empty() ? POLLIN : POLLIN | POLLOUT), 0};
  if (poll(&polled, 1, static_cast<int>(left) + 1) < 0) {
    return errno == EINTR;
  }
  if ((polled.revents & POLLOUT) != 0) {
    Write();
  }
  if ((polled.revents & ~POLLOUT) != 0) {
    Read();
  }
  return true;
}

bool ChannelSocket::ReadWhile(const std::function<bool()>& done, Duration deadline) {
  const auto until = Clock::now() + deadline;
  while (!done()) {
    if (!PumpOnce(until)) {
      return done();
    }
  }
  return true;
}

bool ChannelSocket::ReadToEnd(Duration deadline) {
  return ReadWhile([this] { return !fd_; }, deadline);
}

}  // namespace gantry::e2e
