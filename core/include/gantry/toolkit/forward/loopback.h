// SPDX-License-Identifier: Apache-2.0
//
// The loopback of a pod's network namespace on the host. A sandbox may have a network stack
// of its own (a sentry's, a guest's); so nobody listens there; but containerd's CRI server forwards
// a port by connecting to it there. One listener stands for all ports: a program of the kernel's
// (BPF, sk_lookup) leads every connection to it that no connection of before claims. It decides
// before the kernel looks for listeners, so that other listeners there are not reached by a
// loopback address; the pod's loopback is the sandbox's. Source: Linux,
// Documentation/bpf/prog_sk_lookup.rst, net/ipv4/inet_hashtables.c.
#pragma once

#include <cstdint>
#include <optional>

#include <gantry/error.h>
#include <gantry/toolkit/net/netns.h>
#include <gantry/unique_fd.h>

namespace gantry::forward {

/// A TCP socket that listens in `netns`, on the loopback interface alone, for IPv6 and IPv4,
/// without IPv6 on the node for IPv4. It blocks, as the store has it (`SandboxContext::Take`).
/// Errors: as of setns(2), socket(2), listen(2).
Result<UniqueFd> ListenOnLoopback(const net::Netns& netns);

/// Connections to any port of 127.0.0.0/8 or ::1 in `netns` reach `listener` as long as the
/// descriptor that this gives is open, or a copy of it. Where IPv6 is not the listener's, those
/// of it are as before. Needs CAP_BPF, CAP_NET_ADMIN and Linux 5.9.
/// Errors: kPermissionDenied, kInvalidArgument and others of bpf(2), with the step that failed.
Result<UniqueFd> LeadLoopback(const net::Netns& netns, const UniqueFd& listener);

/// Whether this node and this process can do that. Errors: the same.
Status CanLeadLoopback();

struct Arrival {
  UniqueFd socket;
  /// That was asked for.
  uint16_t port = 0;
};

/// The next connection. None: there is none, or it was none from the loopback and is closed.
/// Errors: kResourceExhausted: no descriptor or no memory is left; it still waits.
/// Blocks: never longer than some milliseconds.
Result<std::optional<Arrival>> AcceptOnLoopback(const UniqueFd& listener);

/// Closes a connection so that its client learns of a failure (ECONNRESET).
void ResetConnection(UniqueFd socket);

}  // namespace gantry::forward
