// SPDX-License-Identifier: Apache-2.0
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include <gantry/toolkit/net/netlink.h>
#include <gantry/toolkit/net/netns.h>
#include <gantry/toolkit/net/network.h>

namespace gantry::net {
namespace {

using Link = PodNetwork::Link;

/// No stack's segments are longer, whatever the device takes.
constexpr uint32_t kMaxGsoBytes = 1U << 16;

/// None: it is down.
std::optional<Link> LinkFrom(std::string_view message) {
  const auto parsed = Parse<ifinfomsg>(message);
  if (!parsed || (parsed->header.ifi_flags & IFF_UP) == 0) {
    return std::nullopt;
  }
  const Attributes& attributes = parsed->attributes;
  Link link;
  const std::string_view name = attributes.Find(IFLA_IFNAME);
  link.name = name.substr(0, name.find('\0'));
  link.index = parsed->header.ifi_index;
  link.mtu = attributes.Number(IFLA_MTU);
  link.loopback = (parsed->header.ifi_flags & IFF_LOOPBACK) != 0;
  const std::string_view mac = attributes.Find(IFLA_ADDRESS);
  if (mac.size() == kMacBytes && mac.find_first_not_of('\0') != std::string_view::npos) {
    link.mac = mac;
  }
  link.gso_max_bytes = std::min(attributes.Number(IFLA_GSO_MAX_SIZE), kMaxGsoBytes);
  return link;
}

/// Any socket of the namespace will do.
bool HasGso(const UniqueFd& socket, const Link& link) {
  ethtool_value value{};
  value.cmd = ETHTOOL_GGSO;
  ifreq request{};
  link.name.copy(request.ifr_name, IFNAMSIZ - 1);
  request.ifr_data = reinterpret_cast<char*>(&value);
  return ioctl(socket.get(), SIOCETHTOOL, &request) == 0 && value.data != 0;
}

Status ReadLinks(RouteSocket& socket, PodNetwork& network, Deadline deadline) {
  const auto is_up = [](std::string_view message) { return LinkFrom(message).has_value(); };
  auto messages = socket.Dump(RTM_GETLINK, is_up, deadline);
  if (!messages) {
    return std::unexpected(std::move(messages).error().Within("interfaces"));
  }
  for (const std::string& message : *messages) {
    network.links.push_back(LinkFrom(message).value_or(Link()));
    if (Link& link = network.links.back(); !HasGso(socket.fd(), link)) {
      link.gso_max_bytes = 0;
    }
  }
  std::ranges::sort(network.links, {}, &Link::index);
  return {};
}

/// All of a kind, each to its link.
template <class T>
Status ReadParts(RouteSocket& socket, uint16_t type, const char* kind, PodNetwork& network,
                 std::vector<T> Link::* parts, Deadline deadline) {
  const auto wanted = [&network](std::string_view message) {
    const std::optional<T> part = T::From(std::string(message));
    return part && network.Find(part->interface) != nullptr;
  };
  auto messages = socket.Dump(type, wanted, deadline);
  if (!messages) {
    return std::unexpected(std::move(messages).error().Within(kind));
  }
  for (std::string& message : *messages) {
    if (std::optional<T> part = T::From(std::move(message)); part) {
      (network.Find(part->interface)->*parts).push_back(std::move(*part));
    }
  }
  return {};
}

Status CheckSize(const PodNetwork& network) {
  if (network.ToJson().size() <= kMaxPodNetworkBytes) {
    return {};
  }
  size_t addresses = 0;
  size_t routes = 0;
  size_t neighbours = 0;
  for (const Link& link : network.links) {
    addresses += link.addresses.size();
    routes += link.routes.size();
    neighbours += link.neighbours.size();
  }
  return Fail(Code::kResourceExhausted,
              "{} interfaces, {} addresses, {} routes and {} permanent neighbours are more than "
              "fit into {} bytes",
              network.links.size(), addresses, routes, neighbours, kMaxPodNetworkBytes);
}

Result<PodNetwork> Read(const std::string& path) {
  GANTRY_TRY(const Netns netns, Netns::Open(path));
  GANTRY_TRY(RouteSocket socket, RouteSocket::In(netns));
  const Deadline deadline = std::chrono::steady_clock::now() + kNetlinkTime;
  PodNetwork network;
  network.netns = netns.inode();
  GANTRY_CHECK_OK(ReadLinks(socket, network, deadline));
  GANTRY_CHECK_OK(ReadParts(socket, RTM_GETADDR, "addresses", network, &Link::addresses, deadline));
  std::erase_if(network.links,
                [](const Link& link) { return !link.loopback && link.addresses.empty(); });
  GANTRY_CHECK_OK(ReadParts(socket, RTM_GETROUTE, "routes", network, &Link::routes, deadline));
  GANTRY_CHECK_OK(
      ReadParts(socket, RTM_GETNEIGH, "neighbours", network, &Link::neighbours, deadline));
  GANTRY_CHECK_OK(CheckSize(network));
  return network;
}

}  // namespace

Result<PodNetwork> ReadNetwork(const std::string& netns) {
  return netns.empty() ? PodNetwork() : About("read the network of", netns, Read(netns));
}

}  // namespace gantry::net
