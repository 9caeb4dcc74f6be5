// SPDX-License-Identifier: Apache-2.0
//
// A UNIX socket of the host's side, for tests. Nothing of it waits.
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/unique_fd.h>

namespace gantry::vmm::vsock {

class HostEnd {
 public:
  HostEnd() = default;

  explicit HostEnd(UniqueFd fd) : fd_(std::move(fd)) {}

  static HostEnd Connect(const std::string& path) {
    auto fd = ConnectUnix(path);
    return fd ? HostEnd(std::move(*fd)) : HostEnd();
  }

  /// The next one at a listener; none: nobody has come.
  static HostEnd Accept(const UniqueFd& listener) {
    auto fd = AcceptUnix(listener.get());
    return fd && *fd ? HostEnd(std::move(**fd)) : HostEnd();
  }

  explicit operator bool() const { return static_cast<bool>(fd_); }

  int fd() const { return fd_.get(); }

  /// How much of it goes in.
  size_t Write(std::string_view data) {
    const ssize_t sent = send(fd_.get(), data.data(), data.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    broken_ = broken_ || (sent < 0 && errno != EAGAIN);
    return sent < 0 ? 0 : static_cast<size_t>(sent);
  }

  /// What there is, up to `most`.
  std::string Read(size_t most = 1 << 20) {
    std::string data(most, '\0');
    const ssize_t got = recv(fd_.get(), data.data(), data.size(), MSG_DONTWAIT);
    ended_ = ended_ || got == 0 || (got < 0 && errno != EAGAIN);
    data.resize(got < 0 ? 0 : static_cast<size_t>(got));
    return data;
  }

  /// The last read came to the end; the last write found nobody.
  bool ended() const { return ended_; }

  bool broken() const { return broken_; }

  void End() { shutdown(fd_.get(), SHUT_WR); }

  void Close() { fd_.reset(); }

 private:
  UniqueFd fd_;
  bool ended_ = false;
  bool broken_ = false;
};

}  // namespace gantry::vmm::vsock
