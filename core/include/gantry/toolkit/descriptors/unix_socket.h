// SPDX-License-Identifier: Apache-2.0
//
// UNIX sockets: listening, connecting, who is at the other end, and sending
// descriptors along with bytes. All sockets are CLOEXEC.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry {

/// The longest path that fits an address with its zero byte.
/// Source: unix(7), sizeof(sun_path) = 108.
inline constexpr size_t kMaxSocketPath = 107;

/// The most descriptors that one message carries here.
inline constexpr size_t kMaxMessageFds = 64;

/// A nonblocking stream listener, mode 0600 from the first moment.
/// Errors: INVALID_ARGUMENT for a path that is too long; FAILED_PRECONDITION
/// where something is at `path` (remove a stale socket first).
Result<UniqueFd> ListenUnix(const std::string& path);

/// A connected nonblocking stream socket. Errors: NOT_FOUND without a socket;
/// UNAVAILABLE where nobody listens or the listener's queue is full.
/// Blocks: never.
Result<UniqueFd> ConnectUnix(const std::string& path);

/// One datagram to whoever has bound `path`; of an abstract name the first byte is written
/// '@', as sd_notify(3) does. Errors: INVALID_ARGUMENT for a path that is too long; UNAVAILABLE
/// where nobody is there; the errno's. Blocks: never (EAGAIN).
Status SendDatagram(const std::string& path, std::string_view data);

/// The next connection, nonblocking; nothing where none waits.
Result<std::optional<UniqueFd>> AcceptUnix(int listener);

/// Both ends of a nonblocking stream.
Result<std::pair<UniqueFd, UniqueFd>> UnixSocketPair();
/// Both ends of one that blocks, for programs that know nothing of the other kind.
/// `type`: SOCK_STREAM, SOCK_SEQPACKET.
Result<std::pair<UniqueFd, UniqueFd>> BlockingSocketPair(int type);

struct PeerCredentials {
  pid_t pid;
  uid_t uid;
  gid_t gid;
};

/// Who connected (or listens), as of that moment.
Result<PeerCredentials> PeerOf(int socket);

/// How a nonblocking transfer ended.
struct Transfer {
  size_t bytes = 0;
  /// Nothing moved since one side was not ready.
  bool would_block = false;
  /// Nothing moved since the source is at its end.
  bool end = false;
};

/// Sends up to all of `data`, and with its first byte `fds`; they are on their
/// way if `bytes` > 0. Owner: `fds` are borrowed. Errors: INVALID_ARGUMENT for
/// too many descriptors or descriptors without data; UNAVAILABLE (EPIPE).
Result<Transfer> SendWithFds(int socket, std::span<const char> data, std::span<const int> fds);

/// Receives into `buffer`, and appends descriptors to `fds`. Errors:
/// RESOURCE_EXHAUSTED where the kernel dropped descriptors (too many, or this
/// process may open no more).
Result<Transfer> RecvWithFds(int socket, std::span<char> buffer, std::vector<UniqueFd>& fds);

}  // namespace gantry
