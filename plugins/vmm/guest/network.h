// SPDX-License-Identifier: Apache-2.0
//
// The guest's network as the host says it: interfaces are found by their MAC, and get their names,
// MTU and addresses; then come routes, those without a gateway first, since the others need them,
// and rules by which they are chosen; then neighbours, so that the first packet waits for nobody.
// What the host does not say is not there: IPv6 gives an interface no address by itself.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>

#include "plugins/vmm/protocol/messages.h"

namespace gantry::vmm::guest {

/// A request to rtnetlink: what is behind nlmsghdr.
struct NetworkChange {
  uint16_t type = 0;
  uint16_t flags = 0;
  std::string message{};
  /// For errors: "address 10.0.0.2/24 of eth0".
  std::string what{};
};

/// Errors: kInvalidArgument: no address, no MAC, a prefix that is too long, and which.
/// Thread: any. Blocks: never.
Result<NetworkChange> AddressChange(int32_t index, const std::string& interface,
                                    const protocol::Address& address);
/// `hops`: the interfaces of its next hops, where it has several; then `index` does not count.
Result<NetworkChange> RouteChange(int32_t index, const protocol::Route& route,
                                  const std::vector<int32_t>& hops = {});
Result<NetworkChange> RuleChange(const std::string& rule);
Result<NetworkChange> NeighbourChange(int32_t index, const protocol::Neighbour& neighbour);
/// Routes in the order in which they can be made.
std::vector<protocol::Route> InOrder(std::vector<protocol::Route> routes);
/// A name that the kernel takes.
bool IsInterfaceName(std::string_view name);

/// All of it, and the loopback up. Again: success. Errors: the first that fails, with what it was;
/// kNotFound: no interface has that MAC. Blocks: for the kernel. Thread: any, of the namespace.
Status SetUpNetwork(const protocol::SetUp& request);

}  // namespace gantry::vmm::guest
