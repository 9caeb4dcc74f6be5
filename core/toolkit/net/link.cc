// SPDX-License-Identifier: Apache-2.0
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <gantry/toolkit/net/link.h>
#include <gantry/toolkit/net/message.h>
#include <gantry/toolkit/net/pod_network.h>

namespace gantry::net {
namespace {

/// A word of the kernel's, which may have a zero behind it.
std::string WordOf(std::string_view value) {
  return std::string(value.substr(0, value.find('\0')));
}

/// As long a one as this kernel has; of an older one what is missing is zero.
rtnl_link_stats64 StatisticsOf(std::string_view value) {
  rtnl_link_stats64 statistics{};
  value.copy(reinterpret_cast<char*>(&statistics), sizeof(statistics));
  return statistics;
}

ifinfomsg HeaderOf(int32_t index) {
  ifinfomsg header{};
  header.ifi_index = index;
  return header;
}

}  // namespace

std::optional<LinkInfo> LinkInfo::From(std::string_view message) {
  const auto parsed = Parse<ifinfomsg>(message);
  if (!parsed) {
    return std::nullopt;
  }
  const Attributes& attributes = parsed->attributes;
  LinkInfo link;
  link.index = parsed->header.ifi_index;
  link.type = parsed->header.ifi_type;
  link.flags = parsed->header.ifi_flags;
  link.name = WordOf(attributes.Find(IFLA_IFNAME));
  link.kind = WordOf(Attributes(attributes.Find(IFLA_LINKINFO)).Find(IFLA_INFO_KIND));
  const std::string_view mac = attributes.Find(IFLA_ADDRESS);
  if (mac.size() == kMacBytes && mac.find_first_not_of('\0') != std::string_view::npos) {
    link.mac = mac;
  }
  if (attributes.Find(IFLA_LINK_NETNSID).empty()) {
    link.lower = static_cast<int32_t>(attributes.Number(IFLA_LINK));
  }
  const rtnl_link_stats64 carried = StatisticsOf(attributes.Find(IFLA_STATS64));
  link.received = {carried.rx_bytes, carried.rx_packets, carried.rx_errors, carried.rx_dropped};
  link.sent = {carried.tx_bytes, carried.tx_packets, carried.tx_errors, carried.tx_dropped};
  return link;
}

Result<std::vector<LinkInfo>> ReadLinks(RouteSocket& socket, Deadline deadline) {
  const auto any = [](std::string_view) { return true; };
  GANTRY_TRY(const auto messages, socket.Dump(RTM_GETLINK, any, deadline));
  std::vector<LinkInfo> links;
  for (const std::string& message : messages) {
    if (std::optional<LinkInfo> link = LinkInfo::From(message); link) {
      links.push_back(std::move(*link));
    }
  }
  std::ranges::sort(links, {}, &LinkInfo::index);
  return links;
}

Status KeepWithoutAddress(RouteSocket& socket, int32_t index, Deadline deadline) {
  const uint8_t mode = IN6_ADDR_GEN_MODE_NONE;
  std::string of_ipv6;
  AddAttribute(of_ipv6, IFLA_INET6_ADDR_GEN_MODE, BytesOf(mode));
  std::string of_families;
  AddAttribute(of_families, AF_INET6, of_ipv6);
  std::string message = MessageOf(HeaderOf(index));
  AddAttribute(message, IFLA_AF_SPEC, of_families);
  Status done = socket.Change(RTM_NEWLINK, 0, message, deadline);
  if (!done && done.error().sys_errno == EAFNOSUPPORT) {
    return {};
  }
  return done;
}

Status StartLink(RouteSocket& socket, int32_t index, uint32_t mtu, Deadline deadline) {
  ifinfomsg header = HeaderOf(index);
  header.ifi_flags = IFF_UP;
  header.ifi_change = IFF_UP;
  std::string message = MessageOf(header);
  if (mtu != 0) {
    AddNumber(message, IFLA_MTU, mtu);
  }
  return socket.Change(RTM_NEWLINK, 0, message, deadline);
}

Status RemoveLink(RouteSocket& socket, int32_t index, Deadline deadline) {
  Status done = socket.Change(RTM_DELLINK, 0, MessageOf(HeaderOf(index)), deadline);
  if (!done && done.error().sys_errno == ENODEV) {
    return {};
  }
  return done;
}

}  // namespace gantry::net
