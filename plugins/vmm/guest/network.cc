// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/guest/network.h"

#include <linux/if.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <optional>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/net/netlink.h>
#include <gantry/toolkit/net/network.h>

namespace gantry::vmm::guest {
namespace {

constexpr uint16_t kMake = NLM_F_CREATE | NLM_F_REPLACE;

template <class Header>
std::string MessageOf(const Header& header) {
  static_assert(sizeof(Header) % 4 == 0);
  return {reinterpret_cast<const char*>(&header), sizeof(header)};
}

void Add(std::string& message, uint16_t type, std::string_view value) {
  rtattr attribute{};
  attribute.rta_len = static_cast<uint16_t>(sizeof(attribute) + value.size());
  attribute.rta_type = type;
  message.append(reinterpret_cast<const char*>(&attribute), sizeof(attribute));
  message.append(value);
  message.resize((message.size() + 3) & ~size_t{3});
}

void Add(std::string& message, uint16_t type, uint32_t number) {
  Add(message, type, {reinterpret_cast<const char*>(&number), sizeof(number)});
}

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

struct Link {
  int32_t index = 0;
  std::string name;
  bool up = false;
};

/// The interfaces of the guest, and changes to them.
class Network {
 public:
  explicit Network(net::RouteSocket socket)
      : socket_(std::move(socket)),
        deadline_(std::chrono::steady_clock::now() + net::kNetlinkTime) {}

  Status Read() {
    GANTRY_TRY(const auto messages,
               socket_.Dump(RTM_GETLINK, [](std::string_view) { return true; }, deadline_));
    for (const std::string& message : messages) {
      const auto parsed = net::Parse<ifinfomsg>(message);
      if (!parsed) {
        continue;
      }
      std::string name(parsed->attributes.Find(IFLA_IFNAME));
      name.resize(std::min(name.find('\0'), name.size()));
      Link link{parsed->header.ifi_index, name, (parsed->header.ifi_flags & IFF_UP) != 0};
      if ((parsed->header.ifi_flags & IFF_LOOPBACK) != 0) {
        loopback_ = link;
      } else {
        by_mac_[std::string(parsed->attributes.Find(IFLA_ADDRESS))] = link;
      }
    }
    return {};
  }

  /// Names may be exchanged: so each that changes has none of those that are wanted first.
  Status Name(const std::vector<protocol::Interface>& interfaces) {
    for (const protocol::Interface& one : interfaces) {
      GANTRY_TRY(Link* const link, Find(one));
      if (link->name != one.name) {
        GANTRY_CHECK_OK(SetLink(*link, 0, Format("gantry{}", link->index), 0));
      }
    }
    for (const protocol::Interface& one : interfaces) {
      GANTRY_TRY(Link* const link, Find(one));
      GANTRY_CHECK_OK(SetLink(*link, IFF_UP, one.name, one.mtu));
      index_[one.name] = link->index;
    }
    return {};
  }

  Status RaiseLoopback() {
    return loopback_ && !loopback_->up ? SetLink(*loopback_, IFF_UP, "", 0) : Status();
  }

  Result<int32_t> IndexOf(const std::string& interface) const {
    if (loopback_ && interface == loopback_->name) {
      return loopback_->index;
    }
    const auto found = index_.find(interface);
    if (found != index_.end()) {
      return found->second;
    }
    for (const auto& [mac, link] : by_mac_) {
      if (link.name == interface) {
        return link.index;
      }
    }
    return Fail(Code::kNotFound, "set up the network: there is no interface '{}'", interface);
  }

  Status Change(const Result<NetworkChange>& change) {
    GANTRY_CHECK_OK(change);
    Status done = socket_.Change(change->type, change->flags, change->message, deadline_);
    if (done || done.error().sys_errno == EEXIST) {
      return {};
    }
    return std::unexpected(std::move(done).error().Within("set " + change->what));
  }

 private:
  Result<Link*> Find(const protocol::Interface& one) {
    if (!IsInterfaceName(one.name) || one.mac.size() != net::kMacBytes) {
      return Fail(Code::kInvalidArgument,
                  "set up the network: an interface with a name of {} and a MAC of {} bytes",
                  one.name.size(), one.mac.size());
    }
    const auto found = by_mac_.find(one.mac);
    if (found == by_mac_.end()) {
      return Fail(Code::kNotFound, "set up interface '{}': none in the guest has its MAC",
                  one.name);
    }
    return &found->second;
  }

  Status SetLink(Link& link, unsigned flags, const std::string& name, uint32_t mtu) {
    ifinfomsg header{};
    header.ifi_index = link.index;
    header.ifi_flags = flags;
    header.ifi_change = IFF_UP;
    std::string message = MessageOf(header);
    if (!name.empty()) {
      Add(message, IFLA_IFNAME, std::string_view(name.c_str(), name.size() + 1));
    }
    if (mtu != 0) {
      Add(message, IFLA_MTU, mtu);
    }
    if (Status done = socket_.Change(RTM_NEWLINK, 0, message, deadline_); !done) {
      return std::unexpected(std::move(done).error().Within(
          Format("set interface '{}' to name '{}' and MTU {}", link.name, name, mtu)));
    }
    link.name = name.empty() ? link.name : name;
    return {};
  }

  net::RouteSocket socket_;
  const Deadline deadline_;
  std::optional<Link> loopback_;
  std::map<std::string, Link> by_mac_;
  std::map<std::string, int32_t> index_;
};

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
  ifaddrmsg header{};
  header.ifa_family = FamilyOf(address.ip);
  header.ifa_prefixlen = static_cast<uint8_t>(address.prefix);
  // Whoever had it on the host has it no more: to ask around would only take time.
  header.ifa_flags = header.ifa_family == AF_INET6 ? IFA_F_NODAD : 0;
  header.ifa_scope = IsLinkLocal(address.ip) ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE;
  header.ifa_index = static_cast<uint32_t>(index);
  change.message = MessageOf(header);
  Add(change.message, IFA_LOCAL, address.ip);
  Add(change.message, IFA_ADDRESS, address.ip);
  return change;
}

Result<NetworkChange> RouteChange(int32_t index, const protocol::Route& route) {
  NetworkChange change{.type = RTM_NEWROUTE, .flags = kMake, .message = {}, .what = {}};
  change.what =
      Format("route {}/{} by '{}'", net::IpText(route.destination), route.prefix, route.interface);
  GANTRY_CHECK_OK(CheckPrefix(route.destination, route.prefix, change.what));
  const uint8_t family = FamilyOf(route.destination);
  if ((!route.gateway.empty() && FamilyOf(route.gateway) != family) ||
      (!route.source.empty() && FamilyOf(route.source) != family)) {
    return Fail(Code::kInvalidArgument, "set {}: its gateway or source is of another family",
                change.what);
  }
  rtmsg header{};
  header.rtm_family = family;
  header.rtm_dst_len = static_cast<uint8_t>(route.prefix);
  header.rtm_table = static_cast<uint8_t>(route.table == 0 ? uint32_t{RT_TABLE_MAIN}
                                                           : (route.table < 256 ? route.table : 0));
  header.rtm_protocol = RTPROT_STATIC;
  header.rtm_type = RTN_UNICAST;
  if (route.gateway.empty() && family == AF_INET) {
    header.rtm_scope = static_cast<uint8_t>(
        route.scope == 0 || route.scope > 255 ? uint32_t{RT_SCOPE_LINK} : route.scope);
  }
  header.rtm_flags = route.on_link ? unsigned{RTNH_F_ONLINK} : 0U;
  change.message = MessageOf(header);
  if (route.prefix > 0) {
    Add(change.message, RTA_DST, route.destination);
  }
  if (!route.gateway.empty()) {
    Add(change.message, RTA_GATEWAY, route.gateway);
  }
  if (!route.source.empty()) {
    Add(change.message, RTA_PREFSRC, route.source);
  }
  Add(change.message, RTA_OIF, static_cast<uint32_t>(index));
  if (route.metric != 0) {
    Add(change.message, RTA_PRIORITY, route.metric);
  }
  if (route.table > 255) {
    Add(change.message, RTA_TABLE, route.table);
  }
  if (route.mtu != 0) {
    std::string metrics;
    Add(metrics, RTAX_MTU, route.mtu);
    Add(change.message, RTA_METRICS, metrics);
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
  header.ndm_state = NUD_PERMANENT;
  change.message = MessageOf(header);
  Add(change.message, NDA_DST, neighbour.ip);
  Add(change.message, NDA_LLADDR, neighbour.mac);
  return change;
}

std::vector<protocol::Route> InOrder(std::vector<protocol::Route> routes) {
  std::ranges::stable_partition(routes, [](const auto& route) { return route.gateway.empty(); });
  return routes;
}

Status SetUpNetwork(const protocol::SetUp& request) {
  GANTRY_TRY(net::RouteSocket socket, net::RouteSocket::Own());
  Network network(std::move(socket));
  GANTRY_CHECK_OK(network.Read());
  GANTRY_CHECK_OK(network.RaiseLoopback());
  GANTRY_CHECK_OK(network.Name(request.interfaces));
  for (const protocol::Interface& one : request.interfaces) {
    GANTRY_TRY(const int32_t index, network.IndexOf(one.name));
    for (const protocol::Address& address : one.addresses) {
      GANTRY_CHECK_OK(network.Change(AddressChange(index, one.name, address)));
    }
  }
  for (const protocol::Route& route : InOrder(request.routes)) {
    GANTRY_TRY(const int32_t index, network.IndexOf(route.interface));
    GANTRY_CHECK_OK(network.Change(RouteChange(index, route)));
  }
  for (const protocol::Neighbour& neighbour : request.neighbours) {
    GANTRY_TRY(const int32_t index, network.IndexOf(neighbour.interface));
    GANTRY_CHECK_OK(network.Change(NeighbourChange(index, neighbour)));
  }
  return {};
}

}  // namespace gantry::vmm::guest
