// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/vmm/guest/stream_io.h"

#include <poll.h>
#include <sys/socket.h>

#include <optional>

#include <gtest/gtest.h>

#include "plugins/vmm/protocol/frames.h"

namespace gantry::vmm {
namespace {

bool AwaitReadable(int fd) {
  pollfd one{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&one, 1, 60'000) > 0;
}

/// None: the connection has ended.
std::optional<std::string> ReadExactly(int fd, size_t count) {
  std::string bytes;
  while (bytes.size() < count) {
    std::string part(count - bytes.size(), '\0');
    if (!AwaitReadable(fd)) {
      return std::nullopt;
    }
    const ssize_t got = ::recv(fd, part.data(), part.size(), 0);
    if (got <= 0) {
      return std::nullopt;
    }
    bytes.append(part, 0, static_cast<size_t>(got));
  }
  return bytes;
}

}  // namespace

std::string ReadStream(const UniqueFd& stream) {
  std::string bytes;
  for (;;) {
    const auto header = ReadExactly(stream.get(), protocol::kHeaderBytes);
    if (!header) {
      return bytes + "[cut]";
    }
    const size_t length = protocol::LengthIn(*header);
    if (length == 0) {
      return bytes;
    }
    const auto payload = ReadExactly(stream.get(), length);
    if (!payload) {
      return bytes + "[cut]";
    }
    bytes += *payload;
  }
}

std::string ReadUntil(const UniqueFd& stream, const std::string& words) {
  std::string bytes;
  while (!bytes.contains(words)) {
    const auto header = ReadExactly(stream.get(), protocol::kHeaderBytes);
    const size_t length = header ? protocol::LengthIn(*header) : 0;
    const auto payload = length == 0 ? std::nullopt : ReadExactly(stream.get(), length);
    if (!payload) {
      return bytes + "[end]";
    }
    bytes += *payload;
  }
  return bytes;
}

void WriteStream(const UniqueFd& stream, const std::string& bytes) {
  const std::string frame = protocol::Framed(bytes);
  size_t done = 0;
  while (done < frame.size()) {
    pollfd one{.fd = stream.get(), .events = POLLOUT, .revents = 0};
    ::poll(&one, 1, 60'000);
    const ssize_t sent =
        ::send(stream.get(), frame.data() + done, frame.size() - done, MSG_NOSIGNAL);
    ASSERT_GT(sent, 0);
    done += static_cast<size_t>(sent);
  }
}

void EndStream(const UniqueFd& stream) { WriteStream(stream, ""); }

}  // namespace gantry::vmm
