// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/unix_socket.h>

namespace gantry {

namespace {

Result<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() > kMaxSocketPath || path.contains('\0')) {
    return Fail(Code::kInvalidArgument, "socket path '{}': must have 1 to {} bytes, has {}", path,
                kMaxSocketPath, path.size());
  }
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

Result<UniqueFd> MakeSocket() {
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) {
    return FailErrno(errno, "make a socket");
  }
  return fd;
}

Result<std::pair<UniqueFd, UniqueFd>> NewPair(int type) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends.data()) < 0) {
    return FailErrno(errno, "make a socket pair");
  }
  return std::pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

/// The control part of a message with the most descriptors that we allow.
struct alignas(cmsghdr) ControlBuffer {
  std::array<char, CMSG_SPACE(sizeof(int) * kMaxMessageFds)> bytes{};
};

/// Takes the descriptors out of a received message.
void TakeFds(msghdr& message, std::vector<UniqueFd>& fds) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(fd));
      fds.emplace_back(fd);
    }
  }
}

}  // namespace

Result<UniqueFd> ListenUnix(const std::string& path) {
  GANTRY_TRY(const sockaddr_un address, AddressOf(path));
  GANTRY_TRY(UniqueFd fd, MakeSocket());
  // Linux gives the file the mode of the unbound socket (less the umask), so
  // there is no moment at which others could connect.
  if (fchmod(fd.get(), 0600) < 0) {
    return FailErrno(errno, "set the mode of socket '{}'", path);
  }
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) < 0) {
    Error error = ErrnoError(errno, Format("bind socket '{}'", path));
    if (error.sys_errno == EADDRINUSE) {
      error.code = Code::kFailedPrecondition;
    }
    return std::unexpected(std::move(error));
  }
  if (listen(fd.get(), SOMAXCONN) < 0) {
    return FailErrno(errno, "listen on socket '{}'", path);
  }
  return fd;
}

Result<UniqueFd> ConnectUnix(const std::string& path) {
  GANTRY_TRY(const sockaddr_un address, AddressOf(path));
  GANTRY_TRY(UniqueFd fd, MakeSocket());
  // On a UNIX socket this never waits: it connects or says EAGAIN.
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) < 0) {
    Error error = ErrnoError(errno, Format("connect to socket '{}'", path));
    if (error.sys_errno == EAGAIN) {
      error.code = Code::kUnavailable;
    }
    return std::unexpected(std::move(error));
  }
  return fd;
}

Status SendDatagram(const std::string& path, std::string_view data) {
  GANTRY_TRY(sockaddr_un address, AddressOf(path));
  // An abstract name ends where the address does.
  const size_t size = offsetof(sockaddr_un, sun_path) + path.size() + (path[0] == '@' ? 0 : 1);
  if (path[0] == '@') {
    address.sun_path[0] = '\0';
  }
  const UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) {
    return FailErrno(errno, "make a socket");
  }
  if (sendto(fd.get(), data.data(), data.size(), MSG_NOSIGNAL,
             reinterpret_cast<const sockaddr*>(&address), static_cast<socklen_t>(size)) < 0) {
    return FailErrno(errno, "send to socket '{}'", path);
  }
  return {};
}

Result<std::optional<UniqueFd>> AcceptUnix(int listener) {
  while (true) {
    UniqueFd fd(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd) {
      return fd;
    }
    if (errno == EAGAIN) {
      return std::nullopt;
    }
    if (errno != EINTR && errno != ECONNABORTED) {
      return FailErrno(errno, "accept a connection");
    }
  }
}

Result<std::pair<UniqueFd, UniqueFd>> UnixSocketPair() {
  return NewPair(SOCK_STREAM | SOCK_NONBLOCK);
}

Result<std::pair<UniqueFd, UniqueFd>> BlockingSocketPair(int type) { return NewPair(type); }

Result<PeerCredentials> PeerOf(int socket) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) < 0) {
    return FailErrno(errno, "get the credentials of a connection");
  }
  return PeerCredentials{.pid = credentials.pid, .uid = credentials.uid, .gid = credentials.gid};
}

Result<Transfer> SendWithFds(int socket, std::span<const char> data, std::span<const int> fds) {
  if (fds.size() > kMaxMessageFds || (!fds.empty() && data.empty())) {
    return Fail(Code::kInvalidArgument, "send {} descriptors with {} bytes: not possible",
                fds.size(), data.size());
  }
  // sendmsg does not write to the data.
  iovec part{.iov_base = const_cast<char*>(data.data()), .iov_len = data.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  ControlBuffer control;
  if (!fds.empty()) {
    message.msg_control = control.bytes.data();
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  while (true) {
    const ssize_t sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    if (sent >= 0) {
      return Transfer{.bytes = static_cast<size_t>(sent)};
    }
    if (errno == EAGAIN) {
      return Transfer{.would_block = true};
    }
    if (errno != EINTR) {
      return FailErrno(errno, "send to a socket");
    }
  }
}

Result<Transfer> RecvWithFds(int socket, std::span<char> buffer, std::vector<UniqueFd>& fds) {
  iovec part{.iov_base = buffer.data(), .iov_len = buffer.size()};
  ControlBuffer control;
  while (true) {
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes.data();
    message.msg_controllen = control.bytes.size();
    const ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (got >= 0) {
      std::vector<UniqueFd> received;
      TakeFds(message, received);
      if ((message.msg_flags & MSG_CTRUNC) != 0) {
        return Fail(Code::kResourceExhausted, "receive from a socket: descriptors were lost");
      }
      fds.insert(fds.end(), std::make_move_iterator(received.begin()),
                 std::make_move_iterator(received.end()));
      return Transfer{.bytes = static_cast<size_t>(got), .end = got == 0 && !buffer.empty()};
    }
    if (errno == EAGAIN) {
      return Transfer{.would_block = true};
    }
    if (errno != EINTR) {
      return FailErrno(errno, "receive from a socket");
    }
  }
}

}  // namespace gantry
