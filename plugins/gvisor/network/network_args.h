// SPDX-License-Identifier: Apache-2.0
//
// A pod's network as a sentry takes it, by `containerManager.SetNetworkArgs` or, older ones,
// by `Network.CreateLinksAndRoutes`: one JSON for both.
// Source: runsc 20240729 and 2026-09, runsc/boot/network.go, runsc/config/flags.go.
#pragma once

#include <cstdint>
#include <string>

#include <gantry/toolkit/net/pod_network.h>

namespace gantry::gvisor {

/// As the sentry numbers them.
enum class QueueingDiscipline {
  kNone = 0,
  kFifo = 1,
  /// Limits what is sent. Of releases since 2026-05.
  kTbf = 2,
};

/// The flags of `runsc` that speak of the network, with its own defaults.
struct NetworkOptions {
  /// `-gso`: large segments go through the host's devices that take them.
  bool host_gso = true;
  /// `-software-gso`: they go through the sentry's stack where they do not through the device.
  bool gvisor_gso = true;
  /// `-gvisor-gro`
  bool gvisor_gro = false;
  bool tx_checksum_offload = false;
  bool rx_checksum_offload = true;
  QueueingDiscipline qdisc = QueueingDiscipline::kFifo;
  /// `-qdisc-tbf-rate`, in bytes a second, and `-qdisc-tbf-burst`, in bytes.
  uint64_t tbf_rate = 0;
  uint64_t tbf_burst = 0;
  /// `-num-network-channels`: sockets for each interface, at least one.
  uint32_t channels = 1;
  /// `-network-processors-per-channel`: 0, as many as there are processors for it.
  uint32_t processors_per_channel = 0;
  /// `-log-packets`: each of them is a line in the sentry's debug log.
  bool log_packets = false;
  /// Not a flag: a spec whose sysctl `net.ipv6.conf.all.disable_ipv6` is not 0 goes without.
  bool ipv6 = true;
  /// Not a flag: the sentry is to be restored, not started. Releases before 2026-07 need not know.
  bool is_restore = false;
  /// Not a flag: a route may have an MTU. Releases before 2025-06 take no notice of it, so there no
  /// link has a larger one than the least of its routes. Source: google/gvisor #11856.
  bool route_mtu = true;
};

/// The argument of the call. Where no loopback is up in the namespace there is one
/// nevertheless, with the usual addresses. It goes with
/// `net::OpenSockets` of the same channels and segments.
std::string NetworkArgs(const net::PodNetwork& network, const NetworkOptions& options);

}  // namespace gantry::gvisor
