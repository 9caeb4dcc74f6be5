// SPDX-License-Identifier: Apache-2.0
//
// The next hops of a route that has several. Source: Linux, include/uapi/linux/rtnetlink.h,
// rtnexthop.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <gantry/toolkit/net/netlink.h>

namespace gantry::vmm {

struct NextHop {
  int32_t interface = 0;
  /// RTNH_F_*.
  uint32_t flags = 0;
  /// From 1 on.
  uint32_t weight = 1;
  net::Attributes attributes{std::string_view()};
};

/// `value`: of RTA_MULTIPATH. What is cut off is not there. Owner: the bytes stay another's.
/// Thread: any. Blocks: never.
std::vector<NextHop> NextHopsIn(std::string_view value);

/// The gateway of a route or of one of its hops, of either family; empty: there is none.
std::string_view GatewayIn(const net::Attributes& attributes);

}  // namespace gantry::vmm
