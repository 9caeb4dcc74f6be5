// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/network/next_hops.h"

#include <linux/rtnetlink.h>

#include <algorithm>

namespace gantry::vmm {
namespace {

/// In front of the address in RTA_VIA: the family.
constexpr size_t kViaHeaderBytes = sizeof(rtvia);

}  // namespace

std::vector<NextHop> NextHopsIn(std::string_view value) {
  std::vector<NextHop> hops;
  rtnexthop header{};
  while (value.size() >= sizeof(header)) {
    value.copy(reinterpret_cast<char*>(&header), sizeof(header));
    if (header.rtnh_len < sizeof(header) || header.rtnh_len > value.size()) {
      break;
    }
    hops.push_back({.interface = header.rtnh_ifindex,
                    .flags = header.rtnh_flags,
                    .weight = header.rtnh_hops + 1U,
                    .attributes = net::Attributes(
                        value.substr(sizeof(header), header.rtnh_len - sizeof(header)))});
    value.remove_prefix(std::min<size_t>(RTNH_ALIGN(header.rtnh_len), value.size()));
  }
  return hops;
}

std::string_view GatewayIn(const net::Attributes& attributes) {
  const std::string_view via = attributes.Find(RTA_VIA);
  return via.size() > kViaHeaderBytes ? via.substr(kViaHeaderBytes) : attributes.Find(RTA_GATEWAY);
}

}  // namespace gantry::vmm
