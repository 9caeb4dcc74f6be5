// SPDX-License-Identifier: Apache-2.0
//
// A pod's network in the words of the guest agent: all addresses and routes as they are, those that
// the kernel makes by itself with an address too, so that the guest adds none of its own.
#pragma once

#include <string>
#include <vector>

#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/toolkit/net/netlink.h>
#include <gantry/toolkit/net/pod_network.h>

#include "plugins/vmm/protocol/messages.h"

namespace gantry::vmm {

/// Of one link, or of one of its routes, addresses and neighbours. Thread: any. Blocks: never.
protocol::Interface InterfaceOf(const net::PodNetwork::Link& link);
protocol::Route RouteOf(const net::PodNetwork& network, const net::PodNetwork::Link& link,
                        const net::PodNetwork::Route& route);
protocol::Neighbour NeighbourOf(const net::PodNetwork::Link& link,
                                const net::PodNetwork::Neighbour& neighbour);

/// The gateways of the routes as far as the namespace knows their MACs, though not for ever: the
/// first packet waits for nobody, and the guest asks again by and by.
/// Errors: the kernel's. Blocks: up to `deadline`.
Result<std::vector<protocol::Neighbour>> ReadGateways(net::RouteSocket& socket,
                                                      const net::PodNetwork& network,
                                                      Deadline deadline);

/// The rules by which the namespace chooses among its tables (ip-rule(8)), but for those that are
/// there from its start: the kernel's own messages, in their order.
/// Errors: kResourceExhausted: they are more than `net::kMaxPodNetworkBytes`; the kernel's. Blocks:
/// up to `deadline`.
Result<std::vector<std::string>> ReadRules(net::RouteSocket& socket, Deadline deadline);

}  // namespace gantry::vmm
