// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/network/guest_network.h"

#include <linux/fib_rules.h>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>

#include "plugins/vmm/network/next_hops.h"

namespace gantry::vmm {
namespace {

using net::PodNetwork;

/// A state in which the kernel has used the MAC, or would.
constexpr uint16_t kKnown = NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE;

protocol::Address AddressOf(const PodNetwork::Address& address) {
  protocol::Address out{.ip = address.ip, .prefix = address.prefix, .no_prefix_route = true};
  if (const auto parsed = net::Parse<ifaddrmsg>(address.message); parsed) {
    const std::string_view peer = parsed->attributes.Find(IFA_ADDRESS);
    if (!peer.empty() && peer != address.ip) {
      out.peer = peer;
    }
    out.broadcast = parsed->attributes.Find(IFA_BROADCAST);
  }
  return out;
}

/// What every loopback has.
bool IsLoopbacks(const PodNetwork::Address& address) {
  const std::string text = net::IpText(address.ip);
  return text == "127.0.0.1" || text == "::1";
}

/// Of any of the routes: of one with several hops a gateway may be by another link.
bool IsGateway(const PodNetwork& network, std::string_view ip) {
  for (const PodNetwork::Link& link : network.links) {
    for (const PodNetwork::Route& route : link.routes) {
      const auto parsed = net::Parse<rtmsg>(route.message);
      if (!parsed) {
        continue;
      }
      const auto hops = NextHopsIn(parsed->attributes.Find(RTA_MULTIPATH));
      if (GatewayIn(parsed->attributes) == ip ||
          std::ranges::any_of(
              hops, [ip](const NextHop& hop) { return GatewayIn(hop.attributes) == ip; })) {
        return true;
      }
    }
  }
  return false;
}

std::vector<protocol::NextHop> HopsOf(const PodNetwork& network, std::string_view hops) {
  std::vector<protocol::NextHop> out;
  for (const NextHop& hop : NextHopsIn(hops)) {
    const auto link = std::ranges::find(network.links, hop.interface, &PodNetwork::Link::index);
    if (link != network.links.end()) {
      out.push_back({.interface = link->name,
                     .gateway = std::string(GatewayIn(hop.attributes)),
                     .weight = hop.weight,
                     .on_link = (hop.flags & RTNH_F_ONLINK) != 0});
    }
  }
  return out;
}

/// As the kernel has them from a namespace's start.
bool IsUsual(const fib_rule_hdr& header, const net::Attributes& attributes) {
  struct Usual {
    uint32_t preference;
    uint32_t table;
  };

  constexpr std::array<Usual, 3> kUsual = {
      {{0, RT_TABLE_LOCAL}, {32766, RT_TABLE_MAIN}, {32767, RT_TABLE_DEFAULT}}};
  const bool is_for_all = header.src_len == 0 && header.dst_len == 0 && header.tos == 0 &&
                          attributes.Find(FRA_IIFNAME).empty() &&
                          attributes.Find(FRA_OIFNAME).empty() &&
                          attributes.Number(FRA_FWMARK) == 0 && header.action == FR_ACT_TO_TBL &&
                          (header.flags & FIB_RULE_INVERT) == 0;
  return is_for_all && std::ranges::any_of(kUsual, [&](const Usual& usual) {
           return usual.preference == attributes.Number(FRA_PRIORITY) &&
                  usual.table == attributes.Number(FRA_TABLE);
         });
}

bool IsRuleToTell(std::string_view message) {
  const auto parsed = net::Parse<fib_rule_hdr>(message);
  return parsed && (parsed->header.family == AF_INET || parsed->header.family == AF_INET6) &&
         !IsUsual(parsed->header, parsed->attributes);
}

std::optional<protocol::Neighbour> GatewayFrom(const PodNetwork& network,
                                               std::string_view message) {
  const auto parsed = net::Parse<ndmsg>(message);
  if (!parsed || (parsed->header.ndm_state & kKnown) == 0) {
    return std::nullopt;
  }
  const auto link =
      std::ranges::find(network.links, parsed->header.ndm_ifindex, &PodNetwork::Link::index);
  const std::string_view ip = parsed->attributes.Find(NDA_DST);
  const std::string_view mac = parsed->attributes.Find(NDA_LLADDR);
  if (link == network.links.end() || ip.empty() || mac.size() != net::kMacBytes ||
      !IsGateway(network, ip)) {
    return std::nullopt;
  }
  return protocol::Neighbour{
      .interface = link->name, .ip = std::string(ip), .mac = std::string(mac), .state = NUD_STALE};
}

}  // namespace

protocol::Interface InterfaceOf(const PodNetwork::Link& link) {
  protocol::Interface out{.mac = link.mac, .name = link.name, .mtu = link.mtu, .addresses = {}};
  for (const PodNetwork::Address& address : link.addresses) {
    if (!link.loopback || !IsLoopbacks(address)) {
      out.addresses.push_back(AddressOf(address));
    }
  }
  return out;
}

protocol::Route RouteOf(const PodNetwork& network, const PodNetwork::Link& link,
                        const PodNetwork::Route& route) {
  protocol::Route out;
  out.interface = link.name;
  out.destination = route.destination;
  out.prefix = route.prefix;
  out.metric = route.metric;
  out.mtu = route.mtu;
  if (const auto parsed = net::Parse<rtmsg>(route.message); parsed) {
    const uint32_t table = parsed->attributes.Number(RTA_TABLE);
    out.gateway = GatewayIn(parsed->attributes);
    out.source = parsed->attributes.Find(RTA_PREFSRC);
    out.scope = parsed->header.rtm_scope;
    out.table = table != 0 ? table : parsed->header.rtm_table;
    out.on_link = (parsed->header.rtm_flags & RTNH_F_ONLINK) != 0;
    out.protocol = parsed->header.rtm_protocol;
    out.next_hops = HopsOf(network, parsed->attributes.Find(RTA_MULTIPATH));
  }
  return out;
}

protocol::Neighbour NeighbourOf(const PodNetwork::Link& link,
                                const PodNetwork::Neighbour& neighbour) {
  return {.interface = link.name, .ip = neighbour.ip, .mac = neighbour.mac, .state = NUD_PERMANENT};
}

Result<std::vector<protocol::Neighbour>> ReadGateways(net::RouteSocket& socket,
                                                      const PodNetwork& network,
                                                      Deadline deadline) {
  const auto wanted = [&](std::string_view message) {
    return GatewayFrom(network, message).has_value();
  };
  GANTRY_TRY(const auto messages, socket.Dump(RTM_GETNEIGH, wanted, deadline));
  std::vector<protocol::Neighbour> gateways;
  for (const std::string& message : messages) {
    if (auto one = GatewayFrom(network, message); one) {
      gateways.push_back(std::move(*one));
    }
  }
  return gateways;
}

Result<std::vector<std::string>> ReadRules(net::RouteSocket& socket, Deadline deadline) {
  auto rules = socket.Dump(RTM_GETRULE, IsRuleToTell, deadline);
  if (!rules && rules.error().sys_errno == EOPNOTSUPP) {
    return std::vector<std::string>();  // A kernel without rules.
  }
  GANTRY_CHECK_OK(rules);
  size_t bytes = 0;
  for (const std::string& rule : *rules) {
    bytes += rule.size();
  }
  if (bytes > net::kMaxPodNetworkBytes) {
    return Fail(Code::kResourceExhausted, "{} rules of routing are more than fit into {} bytes",
                rules->size(), net::kMaxPodNetworkBytes);
  }
  return rules;
}

}  // namespace gantry::vmm
