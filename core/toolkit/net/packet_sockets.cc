// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <gantry/toolkit/net/netns.h>
#include <gantry/toolkit/net/network.h>

namespace gantry::net {
namespace {

using Link = PodNetwork::Link;

/// `forced`: what may be more than the node's limit, for who is allowed to.
Status Enlarge(const UniqueFd& socket, int forced, int limited) {
  constexpr int kBytes = kSocketBufferBytes;
  if (setsockopt(socket.get(), SOL_SOCKET, forced, &kBytes, sizeof(kBytes)) != 0 &&
      setsockopt(socket.get(), SOL_SOCKET, limited, &kBytes, sizeof(kBytes)) != 0) {
    return FailErrno(errno, "enlarge a buffer");
  }
  return {};
}

Status Bind(const UniqueFd& socket, const Link& link, bool host_gso) {
  sockaddr_ll name{};
  name.sll_family = AF_PACKET;
  name.sll_protocol = htons(ETH_P_ALL);
  name.sll_ifindex = link.index;
  constexpr int kOn = 1;
  // Before it is bound: no packet comes without the header.
  if (host_gso && setsockopt(socket.get(), SOL_PACKET, PACKET_VNET_HDR, &kOn, sizeof(kOn)) != 0) {
    return FailErrno(errno, "have large segments of '{}'", link.name);
  }
  GANTRY_CHECK_OK(Enlarge(socket, SO_RCVBUFFORCE, SO_RCVBUF));
  GANTRY_CHECK_OK(Enlarge(socket, SO_SNDBUFFORCE, SO_SNDBUF));
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof(name)) != 0) {
    return FailErrno(errno, "bind to '{}'", link.name);
  }
  return {};
}

Result<std::vector<UniqueFd>> Open(const std::string& path, const PodNetwork& network,
                                   const PacketSocketOptions& options) {
  GANTRY_TRY(const Netns netns, Netns::Reopen(path, network.netns));
  const auto loopbacks = std::ranges::count_if(network.links, &Link::loopback);
  const size_t interfaces = network.links.size() - static_cast<size_t>(loopbacks);
  // Without a protocol nothing arrives before it is bound.
  GANTRY_TRY(std::vector<UniqueFd> sockets,
             netns.Sockets(AF_PACKET, SOCK_RAW, 0, interfaces * options.channels));
  auto next = sockets.begin();
  for (const Link& link : network.links) {
    for (uint32_t i = 0; i < options.channels && !link.loopback; ++i) {
      GANTRY_CHECK_OK(Bind(*next++, link, options.host_gso && link.gso_max_bytes != 0));
    }
  }
  return sockets;
}

}  // namespace

Result<std::vector<UniqueFd>> OpenSockets(const std::string& netns, const PodNetwork& network,
                                          const PacketSocketOptions& options) {
  if (!network.HasInterfaces()) {
    return {};
  }
  return About("open packet sockets in", netns, Open(netns, network, options));
}

}  // namespace gantry::net
