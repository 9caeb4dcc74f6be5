// SPDX-License-Identifier: Apache-2.0
//
// The two ends of a port that is forwarded into a sandbox.
//
//     gantry-forward PORT       in the sandbox, once for each connection
//     gantry-forward            on the host, one process for all connections of a pod
//
// In the sandbox its descriptor 0 is a stream socket of the host's. It connects to the port on
// the pod's own loopback, writes one byte of how that went (0, or the errno), and then carries
// bytes. On the host the engine gives it, for each connection, the client's TCP socket and the
// other end of what the one in the sandbox has (protocol.h); in a virtual machine its guest agent
// does what is said here. Where that one could not connect, the client's connection is reset.
//
// Freestanding: no C library. In a sandbox it is whoever may do least.
#include <netinet/in.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <time.h>

#include <gantry/toolkit/forward/protocol.h>
#include <gantry/toolkit/freestanding/kernel.h>
#include <gantry/toolkit/freestanding/start.h>

#include "core/toolkit/forward/program/relay.h"
#include "core/toolkit/forward/program/rights.h"

namespace gantry::freestanding {
namespace {

using forward::kControlNumber;
using forward::kMaxConnections;

/// A server whose queue is full has this long: the sentry tries again after 1, 3, 7, 15 and
/// 31 s.
constexpr long kConnectSeconds = 60;

alignas(kRelayBytes) char g_buffers[kMaxConnections][kRelayBytes];

struct Connection {
  int client;
  int sentry;
  uint16_t port;
  bool used;
  /// For the first byte from the sandbox.
  bool waits;
  bool framed;
  /// Of that one, which is in a frame of its own where there are frames.
  char said[kFrameHeaderBytes + 1];
  long heard;
  Relay relay;
};

Connection g_connections[kMaxConnections];

/// The control part of a message with descriptors.
union Descriptors {
  cmsghdr header;
  char bytes[CMSG_SPACE(2 * sizeof(int))];
};

void Report(uint16_t port, long error) {
  const forward::Report report = {port, static_cast<uint16_t>(error)};
  Call(SYS_sendto, kControlNumber, Address(&report), sizeof(report), MSG_DONTWAIT | MSG_NOSIGNAL);
}

void Refuse(int client, int sentry, uint16_t port, long error) {
  ResetWhenClosed(client);
  Call(SYS_close, client);
  Call(SYS_close, sentry);
  Report(port, error);
}

Connection* FindFree() {
  for (Connection& one : g_connections) {
    if (!one.used) {
      return &one;
    }
  }
  return nullptr;
}

void Accept(int client, int sentry, const forward::Handover& handover) {
  Connection* const one = FindFree();
  if (one == nullptr) {
    Refuse(client, sentry, handover.port, EUSERS);
    return;
  }
  one->client = client;
  one->sentry = sentry;
  one->port = handover.port;
  one->framed = handover.framed != 0;
  one->heard = 0;
  one->used = true;
  one->waits = true;
}

void ReceiveFromEngine() {
  forward::Handover handover = {};
  iovec part = {&handover, sizeof(handover)};
  Descriptors descriptors = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = descriptors.bytes;
  message.msg_controllen = sizeof(descriptors);
  const long n =
      Call(SYS_recvmsg, kControlNumber, Address(&message), MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n == 0) {
    End(0);
  }
  // An engine of an earlier release says the port alone.
  const bool whole = n >= static_cast<long>(sizeof(handover.port)) &&
                     message.msg_controllen >= CMSG_LEN(2 * sizeof(int)) &&
                     descriptors.header.cmsg_len == CMSG_LEN(2 * sizeof(int));
  if (whole) {
    const int* const both = reinterpret_cast<const int*>(CMSG_DATA(&descriptors.header));
    Accept(both[0], both[1], handover);
  }
}

void AwaitSentry(Connection& one, const pollfd* polled) {
  if ((polled[0].revents & (POLLHUP | POLLERR)) != 0) {
    // Nobody waits for it any more, and the sentry's side sees that.
    Call(SYS_close, one.client);
    Call(SYS_close, one.sentry);
    one.used = false;
    return;
  }
  const long size = one.framed ? static_cast<long>(sizeof(one.said)) : 1;
  const long n =
      Call(SYS_recvfrom, one.sentry, Address(one.said + one.heard), size - one.heard, MSG_DONTWAIT);
  if (IsForLater(n)) {
    return;
  }
  one.heard += n > 0 ? n : 0;
  if (n > 0 && one.heard < size) {
    return;
  }
  const bool whole = n > 0 && (!one.framed || ReadLength(one.said) == 1);
  const int error = whole ? static_cast<unsigned char>(one.said[size - 1]) : ECONNABORTED;
  if (error == 0) {
    one.waits = false;
    one.relay.Begin(one.client, one.sentry, one.framed);
    return;
  }
  Refuse(one.client, one.sentry, one.port, error);
  one.used = false;
}

void Poll(const Connection& one, pollfd* polled) {
  if (!one.used) {
    polled[0] = polled[1] = {-1, 0, 0};
  } else if (one.waits) {
    polled[0] = {one.client, 0, 0};
    polled[1] = {one.sentry, POLLIN, 0};
  } else {
    one.relay.Poll(polled);
  }
}

void Move(Connection& one, const pollfd* polled) {
  if (one.waits) {
    AwaitSentry(one, polled);
    return;
  }
  one.relay.Move(polled);
  if (!one.relay.IsOpen()) {
    one.relay.Close();
    one.used = false;
  }
}

[[noreturn]] void ServeHost() {
  MayDoNoMore([](const char*, long result) {
    if (result < 0) {
      Report(forward::kNoPort, -result);
      End(1);
    }
    return result;
  });
  static pollfd polled[1 + 2 * kMaxConnections];
  for (int i = 0; i < kMaxConnections; ++i) {
    g_connections[i].relay.UseBuffers(g_buffers[i]);
  }
  for (;;) {
    polled[0] = {kControlNumber, POLLIN, 0};
    for (int i = 0; i < kMaxConnections; ++i) {
      Poll(g_connections[i], &polled[1 + 2 * i]);
    }
    Call(SYS_ppoll, Address(polled), 1 + 2 * kMaxConnections);
    // Those that were there before come first: what is received now has not been polled.
    for (int i = 0; i < kMaxConnections; ++i) {
      if (g_connections[i].used) {
        Move(g_connections[i], &polled[1 + 2 * i]);
      }
    }
    if (polled[0].revents != 0) {
      ReceiveFromEngine();
    }
  }
}

/// The result of a connect(2) that goes on.
long AwaitConnection(int socket) {
  // Whether the other end of 0 is still there is of interest, too.
  pollfd polled[2] = {{socket, POLLOUT, 0}, {0, 0, 0}};
  const timespec limit = {kConnectSeconds, 0};
  const long ready = Call(SYS_ppoll, Address(polled), 2, Address(&limit));
  if (ready <= 0) {
    return ready == 0 ? -ETIMEDOUT : ready;
  }
  if (polled[0].revents == 0) {
    End(1);
  }
  int error = 0;
  socklen_t size = sizeof(error);
  const long got =
      Call(SYS_getsockopt, socket, SOL_SOCKET, SO_ERROR, Address(&error), Address(&size));
  return got < 0 ? got : -error;
}

/// A descriptor, or minus the errno.
long Connect(const sockaddr* address, long size) {
  const long socket = Call(SYS_socket, address->sa_family, SOCK_STREAM | SOCK_NONBLOCK);
  if (socket < 0) {
    return socket;
  }
  long done = Call(SYS_connect, socket, Address(address), size);
  if (done == -EINPROGRESS) {
    done = AwaitConnection(static_cast<int>(socket));
  }
  if (done < 0) {
    Call(SYS_close, socket);
    return done;
  }
  return socket;
}

/// On 127.0.0.1, or, of a server that has none there, on ::1.
long ConnectTo(uint16_t port) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = __builtin_bswap16(port);
  v4.sin_addr.s_addr = __builtin_bswap32(INADDR_LOOPBACK);
  const long first = Connect(reinterpret_cast<const sockaddr*>(&v4), sizeof(v4));
  if (first >= 0 || first == -ETIMEDOUT) {
    return first;
  }
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = v4.sin_port;
  v6.sin6_addr.s6_addr[15] = 1;
  const long second = Connect(reinterpret_cast<const sockaddr*>(&v6), sizeof(v6));
  return second >= 0 ? second : first;
}

[[noreturn]] void ServeSentry(const char* port_text) {
  unsigned port = 0;
  for (const char* at = port_text; *at != '\0'; ++at) {
    port = port * 10 + static_cast<unsigned>(*at - '0');
  }
  const long server = ConnectTo(static_cast<uint16_t>(port));
  const unsigned char error = server < 0 ? static_cast<unsigned char>(-server) : 0;
  Call(SYS_sendto, 0, Address(&error), sizeof(error), MSG_NOSIGNAL);
  if (server < 0) {
    End(1);
  }
  Relay& relay = g_connections[0].relay;
  relay.UseBuffers(g_buffers[0]);
  relay.Begin(0, static_cast<int>(server), false);
  while (relay.IsOpen()) {
    pollfd polled[2];
    relay.Poll(polled);
    Call(SYS_ppoll, Address(polled), 2);
    relay.Move(polled);
  }
  End(0);
}

}  // namespace

[[noreturn]] void Run(long count, char** arguments) {
  Call(SYS_prctl, PR_SET_NAME, Address("gantry-forward"));
  // A huge page for each buffer that is touched would be most of it.
  Call(SYS_prctl, PR_SET_THP_DISABLE, 1);
  if (count > 1) {
    ServeSentry(arguments[1]);
  }
  ServeHost();
}

}  // namespace gantry::freestanding
