// SPDX-License-Identifier: Apache-2.0
//
// What becomes of a pod's network namespace before a network stack of a sandbox's own (a sentry's,
// a guest's) takes the kernel's place there: it gets what the interfaces have (addresses, routes,
// permanent neighbours) and a packet socket on each, and the kernel loses the addresses, so that
// not both answer. In this order:
//
//   ReadNetwork         what there is; nothing is changed
//   PodNetwork::ToJson  is to be kept: with the addresses, what there was is gone, and a start
//                       that is tried again has it from there
//   OpenSockets         for whoever will answer
//   TakeAddresses
//
// and `GiveBackAddresses` where the start fails. A `netns` is the path of a namespace; where
// nothing but a loopback was read it may be empty.
// Thread: any. Blocks: up to `kNetlinkTime`.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/net/pod_network.h>
#include <gantry/unique_fd.h>

namespace gantry::net {

/// For all that one function asks of the kernel, which answers at once.
inline constexpr std::chrono::seconds kNetlinkTime{10};
/// Of a packet socket, each way; the kernel's default loses packets.
inline constexpr int kSocketBufferBytes = 4 << 20;

/// Interfaces that are up and have addresses, and the loopback if it is up. Of an empty path:
/// nothing. IPv6 link-local addresses are addresses
/// like others; of several default routes the one with the lowest metric counts.
/// Errors: kNotFound; kInvalidArgument: no network namespace; kFailedPrecondition: the host's;
/// kResourceExhausted: it does not fit into `kMaxPodNetworkBytes`; kDeadlineExceeded; kAborted.
Result<PodNetwork> ReadNetwork(const std::string& netns);

struct PacketSocketOptions {
  /// Segments larger than the link's MTU come and go, behind a virtio-net header, where the
  /// device makes and takes them. Source: packet(7), PACKET_VNET_HDR.
  bool host_gso = true;
  /// Sockets for each interface, at least one.
  uint32_t channels = 1;
};

/// A packet socket for each channel of each interface but the loopback, in the order of
/// `network.links`. To make those of an interface a group (PACKET_FANOUT) is their user's.
/// Errors: as `ReadNetwork`; kFailedPrecondition: `netns` is another one by now.
Result<std::vector<UniqueFd>> OpenSockets(const std::string& netns, const PodNetwork& network,
                                          const PacketSocketOptions& options);

/// Removes the addresses of the interfaces, and the kernel what depends on them: routes and
/// permanent neighbours. Again: success. Errors: as `OpenSockets`; where it fails, some are gone.
Status TakeAddresses(const std::string& netns, const PodNetwork& network);

/// Puts back what `TakeAddresses` made go. Again: success, as for an interface that is gone.
/// Errors: as `OpenSockets`; kNotFound: the namespace is gone, and there is nothing left to do.
Status GiveBackAddresses(const std::string& netns, const PodNetwork& network);

}  // namespace gantry::net
