// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/network/takeover.h"

#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include <gantry/format.h>
#include <gantry/toolkit/net/netlink.h>

#include "plugins/vmm/network/next_hops.h"

namespace gantry::vmm {
namespace {

using net::LinkInfo;
using net::PodNetwork;

/// A kind of interface, and why it cannot be a guest's.
struct Refused {
  std::string_view kind;
  const char* why;
};

constexpr std::array<Refused, 4> kRefused = {{
    {"ipvlan",
     "it has no MAC of its own, and the node's kernel lets it have what is for its "
     "address; use macvlan, bridge or ptp"},
    {"ipvtap",
     "it has no MAC of its own, and gives its frames to a descriptor; use macvlan, "
     "bridge or ptp"},
    {"macvtap", "it gives its frames to a descriptor already; use macvlan"},
    {"tun", "it gives its frames to a descriptor already; use bridge or ptp"},
}};

std::unexpected<Error> Refuse(const std::string& name, std::string_view why) {
  return Fail(Code::kFailedPrecondition, "interface '{}' cannot be a guest's: {}", name, why);
}

Status CheckKind(const LinkInfo& link) {
  const auto refused = std::ranges::find(kRefused, link.kind, &Refused::kind);
  if (refused != kRefused.end()) {
    return Refuse(link.name, Format("it is of the kind {}: {}", link.kind, refused->why));
  }
  if (link.type != ARPHRD_ETHER || link.mac.empty()) {
    return Refuse(link.name, Format("it is no Ethernet ('{}', type {}), which is what a virtual "
                                    "machine has; use bridge, ptp or macvlan",
                                    link.kind, link.type));
  }
  if ((link.flags & IFF_NOARP) != 0) {
    return Refuse(link.name, Format("it knows no ARP ('{}'), by which a guest finds its "
                                    "neighbours; use bridge, ptp or macvlan",
                                    link.kind));
  }
  return {};
}

Status CheckLink(const PodNetwork& network, const LinkInfo& link) {
  GANTRY_CHECK_OK(CheckKind(link));
  const auto lower = std::ranges::find(network.links, link.lower, &PodNetwork::Link::index);
  if (link.lower != 0 && lower != network.links.end()) {
    return Refuse(link.name, Format("it is on top of '{}', whose frames are the guest's before it "
                                    "has them; give the pod one of the two, or make it in the pod",
                                    lower->name));
  }
  return {};
}

/// Why not; null: it can be.
const char* WhyNotAGuests(const PodNetwork& network, const PodNetwork::Route& route) {
  const auto parsed = net::Parse<rtmsg>(route.message);
  if (!parsed || parsed->header.rtm_src_len != 0 || parsed->header.rtm_tos != 0) {
    return "it is for a source or a type of service";
  }
  if (!parsed->attributes.Find(RTA_ENCAP).empty()) {
    return "it has an encapsulation";
  }
  for (const NextHop& hop : NextHopsIn(parsed->attributes.Find(RTA_MULTIPATH))) {
    if (!hop.attributes.Find(RTA_ENCAP).empty()) {
      return "it has an encapsulation";
    }
    if (!std::ranges::contains(network.links, hop.interface, &PodNetwork::Link::index)) {
      return "it has a next hop by an interface that is down or has no address";
    }
  }
  return nullptr;
}

Status CheckRoute(const PodNetwork& network, const PodNetwork::Link& link,
                  const PodNetwork::Route& route) {
  const char* const why = WhyNotAGuests(network, route);
  if (why == nullptr) {
    return {};
  }
  return Fail(Code::kFailedPrecondition,
              "route to {}/{} by '{}' cannot be a guest's: {}; give the pod another one",
              net::IpText(route.destination), route.prefix, link.name, why);
}

}  // namespace

Status CheckTakeover(const PodNetwork& network, const std::vector<LinkInfo>& links) {
  std::set<std::string> macs;
  for (const PodNetwork::Link& link : network.links) {
    const auto info = std::ranges::find(links, link.index, &LinkInfo::index);
    if (link.loopback) {
      continue;
    }
    if (info == links.end()) {
      return Fail(Code::kFailedPrecondition, "interface '{}' has gone meanwhile", link.name);
    }
    GANTRY_CHECK_OK(CheckLink(network, *info));
    if (!macs.insert(info->mac).second) {
      return Refuse(link.name,
                    "another one of the pod has the same MAC, by which a guest tells "
                    "them apart; give each its own");
    }
    for (const PodNetwork::Route& route : link.routes) {
      GANTRY_CHECK_OK(CheckRoute(network, link, route));
    }
  }
  if (macs.size() > kMostInterfaces) {
    return Fail(Code::kFailedPrecondition, "the pod has {} interfaces, a guest {} at most",
                macs.size(), kMostInterfaces);
  }
  return {};
}

}  // namespace gantry::vmm
