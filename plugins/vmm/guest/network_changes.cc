// SPDX-License-Identifier: Apache-2.0
//
// What is said to rtnetlink.
#include <linux/fib_rules.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/net/message.h>
#include <gantry/toolkit/net/netlink.h>
#include <gantry/toolkit/net/pod_network.h>

#include "plugins/vmm/guest/network.h"

namespace gantry::vmm::guest {
namespace {

using net::AddAttribute;
using net::AddNumber;

constexpr uint16_t kMake = NLM_F_CREATE | NLM_F_REPLACE;
/// Beside those of the same destination and metric, which is a route of its own.
constexpr uint16_t kMakeRoute = NLM_F_CREATE | NLM_F_APPEND;

/// Of a route: they have room in one attribute, and IPv4 takes no more.
constexpr size_t kMostHops = 255;

/// 0: it is none.
uint8_t FamilyOf(std::string_view ip) {
  return ip.size() == net::kV4Bytes ? AF_INET : (ip.size() == net::kV6Bytes ? AF_INET6 : 0);
}

Status CheckPrefix(std::string_view ip, uint32_t prefix, const std::string& what) {
  if (FamilyOf(ip) == 0 || prefix > ip.size() * 8) {
    return Fail(Code::kInvalidArgument, "set {}: an address of {} bytes with prefix {}", what,
                ip.size(), prefix);
  }
  return {};
}

bool IsLinkLocal(std::string_view ip) {
  return ip.size() == net::kV6Bytes && ip[0] == '\xfe' && (ip[1] & '\xc0') == '\x80';
}

/// An address of the family, or one of IPv6 in front of an IPv4 route.
bool IsGateway(uint8_t family, std::string_view gateway) {
  const uint8_t of = FamilyOf(gateway);
  return of == family || (of == AF_INET6 && family == AF_INET);
}

Status CheckFamilies(const protocol::Route& route, size_t hops, const std::string& what) {
  const uint8_t family = FamilyOf(route.destination);
  const bool bad_hop = std::ranges::any_of(route.next_hops, [family](const auto& hop) {
    return !hop.gateway.empty() && !IsGateway(family, hop.gateway);
  });
  if (bad_hop || (!route.gateway.empty() && !IsGateway(family, route.gateway)) ||
      (!route.source.empty() && FamilyOf(route.source) != family)) {
    return Fail(Code::kInvalidArgument, "set {}: its gateway or source is of another family", what);
  }
  if (hops != route.next_hops.size() || hops > kMostHops) {
    return Fail(Code::kInvalidArgument, "set {}: {} next hops, {} interfaces, {} at most", what,
                route.next_hops.size(), hops, kMostHops);
  }
  return {};
}

/// None where it is empty.
void AddGateway(std::string& message, uint8_t family, std::string_view gateway) {
  if (FamilyOf(gateway) == family) {
    AddAttribute(message, RTA_GATEWAY, gateway);
  } else if (!gateway.empty()) {
    const uint16_t of = FamilyOf(gateway);
    AddAttribute(message, RTA_VIA, net::BytesOf(of) + std::string(gateway));
  }
}

std::string HopsOf(uint8_t family, const std::vector<protocol::NextHop>& hops,
                   const std::vector<int32_t>& indices) {
  std::string all;
  for (size_t i = 0; i < hops.size(); ++i) {
    std::string attributes;
    AddGateway(attributes, family, hops[i].gateway);
    rtnexthop header{};
    header.rtnh_len = static_cast<uint16_t>(sizeof(header) + attributes.size());
    header.rtnh_flags = hops[i].on_link ? uint8_t{RTNH_F_ONLINK} : uint8_t{0};
    header.rtnh_hops = static_cast<uint8_t>(hops[i].weight == 0 ? 0 : hops[i].weight - 1);
    header.rtnh_ifindex = indices[i];
    all += net::BytesOf(header) + attributes;
  }
  return all;
}

}  // namespace

bool IsInterfaceName(std::string_view name) {
  return !name.empty() && name.size() < IFNAMSIZ && name != "." && name != ".." &&
         std::ranges::none_of(
             name,
             [](char c) { return c == '/' || c == ':' || static_cast<unsigned char>(c) <= ' '; });
}

Result<NetworkChange> AddressChange(int32_t index, const std::string& interface,
                                    const protocol::Address& address) {
  NetworkChange change{.type = RTM_NEWADDR, .flags = kMake, .message = {}, .what = {}};
  change.what = Format("address {}/{} of '{}'", net::IpText(address.ip), address.prefix, interface);
  GANTRY_CHECK_OK(CheckPrefix(address.ip, address.prefix, change.what));
  for (const std::string* const other : {&address.peer, &address.broadcast}) {
    if (!other->empty() && FamilyOf(*other) != FamilyOf(address.ip)) {
      return Fail(Code::kInvalidArgument, "set {}: its peer or broadcast is of another family",
                  change.what);
    }
  }
  ifaddrmsg header{};
  header.ifa_family = FamilyOf(address.ip);
  header.ifa_prefixlen = static_cast<uint8_t>(address.prefix);
  header.ifa_scope = IsLinkLocal(address.ip) ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE;
  header.ifa_index = static_cast<uint32_t>(index);
  change.message = net::MessageOf(header);
  AddAttribute(change.message, IFA_LOCAL, address.ip);
  AddAttribute(change.message, IFA_ADDRESS, address.peer.empty() ? address.ip : address.peer);
  if (!address.broadcast.empty()) {
    AddAttribute(change.message, IFA_BROADCAST, address.broadcast);
  }
  // Whoever has it on the host hears of nothing: to ask around would only take time.
  AddNumber(change.message, IFA_FLAGS,
            (header.ifa_family == AF_INET6 ? uint32_t{IFA_F_NODAD} : 0U) |
                (address.no_prefix_route ? uint32_t{IFA_F_NOPREFIXROUTE} : 0U));
  return change;
}

Result<NetworkChange> RouteChange(int32_t index, const protocol::Route& route,
                                  const std::vector<int32_t>& hops) {
  NetworkChange change{.type = RTM_NEWROUTE, .flags = kMakeRoute, .message = {}, .what = {}};
  change.what =
      Format("route {}/{} by '{}'", net::IpText(route.destination), route.prefix, route.interface);
  GANTRY_CHECK_OK(CheckPrefix(route.destination, route.prefix, change.what));
  const uint8_t family = FamilyOf(route.destination);
  GANTRY_CHECK_OK(CheckFamilies(route, hops.size(), change.what));
  rtmsg header{};
  header.rtm_family = family;
  header.rtm_dst_len = static_cast<uint8_t>(route.prefix);
  header.rtm_table = static_cast<uint8_t>(route.table == 0 ? uint32_t{RT_TABLE_MAIN}
                                                           : (route.table < 256 ? route.table : 0));
  header.rtm_protocol = static_cast<uint8_t>(
      route.protocol == 0 || route.protocol > 255 ? uint32_t{RTPROT_STATIC} : route.protocol);
  header.rtm_type = RTN_UNICAST;
  if (!route.next_hops.empty()) {
    header.rtm_scope = static_cast<uint8_t>(route.scope);
  } else if (route.gateway.empty() && family == AF_INET) {
    header.rtm_scope = static_cast<uint8_t>(
        route.scope == 0 || route.scope > 255 ? uint32_t{RT_SCOPE_LINK} : route.scope);
  }
  header.rtm_flags = route.on_link ? unsigned{RTNH_F_ONLINK} : 0U;
  change.message = net::MessageOf(header);
  if (route.prefix > 0) {
    AddAttribute(change.message, RTA_DST, route.destination);
  }
  if (!route.source.empty()) {
    AddAttribute(change.message, RTA_PREFSRC, route.source);
  }
  if (route.next_hops.empty()) {
    AddGateway(change.message, family, route.gateway);
    AddNumber(change.message, RTA_OIF, static_cast<uint32_t>(index));
  } else {
    AddAttribute(change.message, RTA_MULTIPATH, HopsOf(family, route.next_hops, hops));
  }
  if (route.metric != 0) {
    AddNumber(change.message, RTA_PRIORITY, route.metric);
  }
  if (route.table > 255) {
    AddNumber(change.message, RTA_TABLE, route.table);
  }
  if (route.mtu != 0) {
    std::string metrics;
    AddNumber(metrics, RTAX_MTU, route.mtu);
    AddAttribute(change.message, RTA_METRICS, metrics);
  }
  return change;
}

Result<NetworkChange> NeighbourChange(int32_t index, const protocol::Neighbour& neighbour) {
  NetworkChange change{.type = RTM_NEWNEIGH, .flags = kMake, .message = {}, .what = {}};
  change.what = Format("neighbour {} on '{}'", net::IpText(neighbour.ip), neighbour.interface);
  if (FamilyOf(neighbour.ip) == 0 || neighbour.mac.size() != net::kMacBytes) {
    return Fail(Code::kInvalidArgument, "set {}: an address of {} and a MAC of {} bytes",
                change.what, neighbour.ip.size(), neighbour.mac.size());
  }
  ndmsg header{};
  header.ndm_family = FamilyOf(neighbour.ip);
  header.ndm_ifindex = index;
  header.ndm_state =
      static_cast<uint16_t>(neighbour.state == 0 ? uint32_t{NUD_PERMANENT} : neighbour.state);
  change.message = net::MessageOf(header);
  AddAttribute(change.message, NDA_DST, neighbour.ip);
  AddAttribute(change.message, NDA_LLADDR, neighbour.mac);
  return change;
}

Result<NetworkChange> RuleChange(const std::string& rule) {
  if (!net::Parse<fib_rule_hdr>(rule)) {
    return Fail(Code::kInvalidArgument, "set a rule of routing: it has {} bytes", rule.size());
  }
  return NetworkChange{.type = RTM_NEWRULE,
                       .flags = NLM_F_CREATE | NLM_F_EXCL,
                       .message = rule,
                       .what = "a rule of routing"};
}

std::vector<protocol::Route> InOrder(std::vector<protocol::Route> routes) {
  std::ranges::stable_partition(
      routes, [](const auto& route) { return route.gateway.empty() && route.next_hops.empty(); });
  return routes;
}

}  // namespace gantry::vmm::guest
