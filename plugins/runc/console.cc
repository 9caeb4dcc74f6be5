// SPDX-License-Identifier: Apache-2.0
#include "plugins/runc/console.h"

#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include <gantry/format.h>

namespace gantry::runc {
namespace {

Result<UniqueFd> Bind(int directory, const std::string& name) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  // The way through /proc keeps the address short; the name stays in the bundle.
  const std::string path = Format("/proc/self/fd/{}/{}", directory, name);
  if (path.size() >= sizeof(address.sun_path)) {
    return Fail(Code::kInternal, "listen on '{}': the name is too long", name);
  }
  memcpy(address.sun_path, path.data(), path.size());
  UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener) {
    return FailErrno(errno, "make a console socket");
  }
  if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(listener.get(), 4) != 0) {
    return FailErrno(errno, "listen on '{}'", name);
  }
  return listener;
}

/// The descriptors of the first message, which stays; all but the first are closed.
UniqueFd FirstDescriptor(const UniqueFd& connection) {
  std::array<char, 4096> data{};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * 8)> control{};
  iovec vector = {data.data(), data.size()};
  msghdr message = {};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  UniqueFd first;
  if (recvmsg(connection.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT | MSG_PEEK) < 0) {
    return first;
  }
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    for (size_t at = 0; CMSG_LEN(at + sizeof(int)) <= part->cmsg_len; at += sizeof(int)) {
      int fd = -1;
      memcpy(&fd, CMSG_DATA(part) + at, sizeof(fd));
      UniqueFd received(fd);
      if (!first) {
        first = std::move(received);
      }
    }
  }
  return first;
}

bool IsTerminalMaster(const UniqueFd& fd) {
  unsigned number = 0;
  return ioctl(fd.get(), TIOCGPTN, &number) == 0;
}

}  // namespace

Result<ConsoleSocket> ConsoleSocket::Listen(const std::string& bundle, const std::string& name) {
  UniqueFd directory(open(bundle.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory) {
    return FailErrno(errno, "open the bundle '{}'", bundle);
  }
  if (unlinkat(directory.get(), name.c_str(), 0) != 0 && errno != ENOENT) {
    return FailErrno(errno, "remove '{}' in the bundle", name);
  }
  GANTRY_TRY(UniqueFd listener, Bind(directory.get(), name));
  return ConsoleSocket(std::move(directory), std::move(listener), name);
}

ConsoleSocket::~ConsoleSocket() {
  if (directory_) {
    unlinkat(directory_.get(), name_.c_str(), 0);
  }
}

Result<UniqueFd> ReceiveTerminal(const UniqueFd& socket) {
  // A keeper of before gives the one that listens.
  const UniqueFd accepted(accept4(socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!accepted && errno == EAGAIN) {
    return Fail(Code::kInternal, "receive the terminal: the OCI runtime sent none");
  }
  UniqueFd master = FirstDescriptor(accepted ? accepted : socket);
  if (!master || !IsTerminalMaster(master)) {
    return Fail(Code::kInternal, "receive the terminal: what the OCI runtime sent is none");
  }
  return master;
}

}  // namespace gantry::runc
