// SPDX-License-Identifier: Apache-2.0
//
// The interfaces of a network namespace as they are: also those that are down or without an
// address, which `ReadNetwork` leaves out, with what kind they are of and what they have carried.
// Source: rtnetlink(7), Linux, net/core/rtnetlink.c.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/toolkit/net/netlink.h>

namespace gantry::net {

/// What an interface has carried in one direction since it was made.
struct LinkTraffic {
  uint64_t bytes = 0;
  uint64_t packets = 0;
  uint64_t errors = 0;
  uint64_t dropped = 0;
};

struct LinkInfo {
  std::string name;
  int32_t index = 0;
  /// The kernel's word: "veth", "tun". Empty: a device that is none of the kernel's own making.
  std::string kind;
  /// Empty: not of six bytes, or nothing but zeros.
  std::string mac;
  /// ARPHRD_*.
  uint16_t type = 0;
  /// IFF_*.
  uint32_t flags = 0;
  /// The interface of the same namespace on top of which it is; 0: of none.
  int32_t lower = 0;
  LinkTraffic received;
  LinkTraffic sent;

  /// None: the message is of something else.
  static std::optional<LinkInfo> From(std::string_view message);
};

/// In the order of their indices. Errors: as `RouteSocket::Dump`. Thread: any.
Result<std::vector<LinkInfo>> ReadLinks(RouteSocket& socket, Deadline deadline);

/// IPv6 gives the interface no address by itself, from its next start on. Where there is no IPv6
/// that is so without it. Again: success. Errors: the kernel's.
Status KeepWithoutAddress(RouteSocket& socket, int32_t index, Deadline deadline);

/// Starts it; `mtu`: 0 leaves that as it is. Again: success. Errors: the kernel's.
Status StartLink(RouteSocket& socket, int32_t index, uint32_t mtu, Deadline deadline);

/// Again: success. Errors: the kernel's: EOPNOTSUPP: it is one that cannot be removed.
Status RemoveLink(RouteSocket& socket, int32_t index, Deadline deadline);

}  // namespace gantry::net
