// SPDX-License-Identifier: Apache-2.0
#include "tests/vmm/harness/socket_io.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <utility>

#include <gantry/toolkit/descriptors/unix_socket.h>

namespace gantry::vmm {
namespace {

Deadline InAMinute() { return std::chrono::steady_clock::now() + std::chrono::minutes(1); }

}  // namespace

bool IsReadable(int socket, Deadline deadline) {
  pollfd one{socket, POLLIN, 0};
  return poll(&one, 1, PollTimeout(deadline)) > 0;
}

Result<UniqueFd> AwaitConnection(const UniqueFd& listener, Deadline deadline) {
  while (IsReadable(listener.get(), deadline)) {
    GANTRY_TRY(std::optional<UniqueFd> accepted, AcceptUnix(listener.get()));
    if (accepted) {
      return std::move(*accepted);
    }
  }
  return Fail(Code::kDeadlineExceeded, "wait for a connection: none has come");
}

Result<std::string> ReadFrom(int socket, size_t size) {
  std::string data(size, '\0');
  size_t got = 0;
  while (got < size) {
    if (!IsReadable(socket, InAMinute())) {
      return Fail(Code::kDeadlineExceeded, "read {} bytes: {} have come", size, got);
    }
    const ssize_t count = recv(socket, data.data() + got, size - got, MSG_DONTWAIT);
    if (count == 0 || (count < 0 && errno != EAGAIN)) {
      return Fail(Code::kUnavailable, "read {} bytes: the end came after {}", size, got);
    }
    got += count < 0 ? 0 : static_cast<size_t>(count);
  }
  return data;
}

Result<std::string> ReadToEnd(int socket) {
  std::string data;
  while (true) {
    if (!IsReadable(socket, InAMinute())) {
      return Fail(Code::kDeadlineExceeded, "read to the end: {} bytes have come", data.size());
    }
    std::array<char, 65536> bytes{};
    const ssize_t count = recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count == 0) {
      return data;
    }
    if (count < 0 && errno != EAGAIN) {
      return FailErrno(errno, "read to the end: {} bytes have come", data.size());
    }
    data.append(bytes.data(), count < 0 ? 0 : static_cast<size_t>(count));
  }
}

Status WriteTo(int socket, std::string_view data) {
  while (!data.empty()) {
    pollfd one{socket, POLLOUT, 0};
    if (poll(&one, 1, PollTimeout(InAMinute())) <= 0) {
      return Fail(Code::kDeadlineExceeded, "write: {} bytes are left", data.size());
    }
    const ssize_t count = send(socket, data.data(), data.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno != EAGAIN) {
      return FailErrno(errno, "write: {} bytes are left", data.size());
    }
    data.remove_prefix(count < 0 ? 0 : static_cast<size_t>(count));
  }
  return {};
}

}  // namespace gantry::vmm
