// SPDX-License-Identifier: Apache-2.0
//
// Addresses, taken and given back. When the kernel loses the last IPv4 address of an interface, it
// drops all IPv4 routes through it, in every table, and its neighbours, the permanent ones too; of
// IPv6 the routes stay that do not come with an address. So all are put back as they were read,
// and what is there is left as it is.
// Source: Linux, net/ipv4/fib_frontend.c (fib_disable_ip), net/ipv6/addrconf.c.
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <ranges>
#include <string_view>
#include <utility>
#include <vector>

#include <gantry/format.h>
#include <gantry/toolkit/net/netlink.h>
#include <gantry/toolkit/net/netns.h>
#include <gantry/toolkit/net/network.h>

namespace gantry::net {
namespace {

using Link = PodNetwork::Link;

/// A change, and the errno that says that there is nothing to change.
struct Request {
  uint16_t type = 0;
  uint16_t flags = 0;
  int done = 0;
};

constexpr Request kTakeAddress = {RTM_DELADDR, 0, EADDRNOTAVAIL};
constexpr Request kAddAddress = {RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, EEXIST};
/// Behind those of the same destination and metric.
constexpr Request kAddRoute = {RTM_NEWROUTE, NLM_F_CREATE | NLM_F_APPEND, EEXIST};
constexpr Request kAddNeighbour = {RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, EEXIST};

/// The requests to one namespace, in one time.
class Changes {
 public:
  static Result<Changes> Open(const std::string& path, const PodNetwork& network) {
    GANTRY_TRY(const Netns netns, Netns::Reopen(path, network.netns));
    GANTRY_TRY(RouteSocket socket, RouteSocket::In(netns));
    return Changes(std::move(socket));
  }

  /// The interfaces that are still there and have `flags` (IFF_UP).
  std::vector<const Link*> LinksOf(const PodNetwork& network, int flags) const {
    std::vector<const Link*> links;
    const int socket = socket_.fd().get();
    for (const Link& link : network.links) {
      ifreq request{};
      request.ifr_ifindex = link.index;
      if (!link.loopback && ioctl(socket, SIOCGIFNAME, &request) == 0 &&
          ioctl(socket, SIOCGIFFLAGS, &request) == 0 && (request.ifr_flags & flags) == flags) {
        links.push_back(&link);
      }
    }
    return links;
  }

  Status Make(const Request& request, std::string_view message, const std::string& object) {
    Status status = socket_.Change(request.type, request.flags, message, deadline_);
    if (status || status.error().sys_errno == request.done) {
      return {};
    }
    return std::unexpected(std::move(status).error().Within(object));
  }

  Status Make(const Request& request, const PodNetwork::Address& address, const Link& link) {
    return Make(request, address.message,
                Format("{}/{} of '{}'", IpText(address.ip), address.prefix, link.name));
  }

 private:
  explicit Changes(RouteSocket socket) : socket_(std::move(socket)) {}

  RouteSocket socket_;
  Deadline deadline_ = std::chrono::steady_clock::now() + kNetlinkTime;
};

Status Take(const std::string& path, const PodNetwork& network) {
  GANTRY_TRY(Changes changes, Changes::Open(path, network));
  for (const Link* link : changes.LinksOf(network, 0)) {
    for (const PodNetwork::Address& address : link->addresses) {
      GANTRY_CHECK_OK(changes.Make(kTakeAddress, address, *link));
    }
  }
  return {};
}

/// IPv4 addresses are listed as they were added, the newest of IPv6 first.
Status AddAddresses(Changes& changes, const Link& link) {
  for (const PodNetwork::Address& one : link.addresses) {
    if (one.ip.size() == kV4Bytes) {
      GANTRY_CHECK_OK(changes.Make(kAddAddress, one, link));
    }
  }
  for (const PodNetwork::Address& one : link.addresses | std::views::reverse) {
    if (one.ip.size() != kV4Bytes) {
      GANTRY_CHECK_OK(changes.Make(kAddAddress, one, link));
    }
  }
  return {};
}

/// A route as it is to be made: what the kernel says of its state is refused.
std::string RouteMessage(const PodNetwork::Route& route) {
  std::string message = route.message;
  rtmsg header{};
  message.copy(reinterpret_cast<char*>(&header), sizeof(header));
  header.rtm_flags &= RTNH_F_ONLINK;
  return message.replace(0, sizeof(header), reinterpret_cast<const char*>(&header), sizeof(header));
}

/// Gateways can be named when they can be reached.
Status AddRoutes(Changes& changes, const Link& link, bool on_link) {
  for (const PodNetwork::Route& route : link.routes) {
    if (route.on_link == on_link) {
      GANTRY_CHECK_OK(changes.Make(
          kAddRoute, RouteMessage(route),
          Format("route to {}/{} by '{}'", IpText(route.destination), route.prefix, link.name)));
    }
  }
  return {};
}

Status AddNeighbours(Changes& changes, const Link& link) {
  for (const PodNetwork::Neighbour& one : link.neighbours) {
    GANTRY_CHECK_OK(changes.Make(kAddNeighbour, one.message,
                                 Format("neighbour {} of '{}'", IpText(one.ip), link.name)));
  }
  return {};
}

Status GiveBack(const std::string& path, const PodNetwork& network) {
  GANTRY_TRY(Changes changes, Changes::Open(path, network));
  for (const Link* link : changes.LinksOf(network, 0)) {
    GANTRY_CHECK_OK(AddAddresses(changes, *link));
    GANTRY_CHECK_OK(AddNeighbours(changes, *link));
  }
  // What is down by now has no routes.
  for (const bool on_link : {true, false}) {
    for (const Link* link : changes.LinksOf(network, IFF_UP)) {
      GANTRY_CHECK_OK(AddRoutes(changes, *link, on_link));
    }
  }
  return {};
}

}  // namespace

Status TakeAddresses(const std::string& netns, const PodNetwork& network) {
  if (!network.HasInterfaces()) {
    return {};
  }
  return About("take the addresses of", netns, Take(netns, network));
}

Status GiveBackAddresses(const std::string& netns, const PodNetwork& network) {
  if (!network.HasInterfaces()) {
    return {};
  }
  return About("give the addresses back to", netns, GiveBack(netns, network));
}

}  // namespace gantry::net
