// SPDX-License-Identifier: Apache-2.0
//
// What an earlier try has left is found by its name: a tap is called after the number of the pod's
// interface that it is beside, and numbers are not used again within a namespace. So nothing has to
// be kept before the first change, and a start that is tried again begins with nothing.
#include "plugins/vmm/network/network.h"

#include <linux/rtnetlink.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include <gantry/deadline.h>
#include <gantry/format.h>
#include <gantry/toolkit/net/link.h>
#include <gantry/toolkit/net/netlink.h>
#include <gantry/toolkit/net/netns.h>
#include <gantry/toolkit/net/network.h>
#include <gantry/toolkit/net/redirect.h>
#include <gantry/toolkit/net/tap.h>

#include "plugins/vmm/network/guest_network.h"
#include "plugins/vmm/network/takeover.h"

namespace gantry::vmm {
namespace {

using net::LinkInfo;
using net::PodNetwork;

constexpr const char* kTapKind = "tun";

Deadline Soon() { return std::chrono::steady_clock::now() + net::kNetlinkTime; }

std::string TapNameOf(int32_t index) { return Format("gtap{}", index); }

std::string MacText(std::string_view mac) {
  std::string text;
  for (const char byte : mac) {
    text += Format("{}{:02x}", text.empty() ? "" : ":", static_cast<unsigned char>(byte));
  }
  return text;
}

/// What an earlier try has made beside that interface.
Status RemoveLeftovers(net::RouteSocket& socket, const PodNetwork::Link& link,
                       const std::vector<LinkInfo>& links, Deadline deadline) {
  GANTRY_CHECK_OK(net::EndRedirect(socket, link.index, deadline));
  const auto tap = std::ranges::find(links, TapNameOf(link.index), &LinkInfo::name);
  if (tap == links.end() || tap->kind != kTapKind) {
    return {};
  }
  return net::RemoveLink(socket, tap->index, deadline);
}

/// The error, in which it is about that interface.
Status AboutLink(const char* what, const std::string& name, Status done) {
  return net::About(Format("{} interface", what), name, std::move(done));
}

Status Join(net::RouteSocket& socket, int32_t interface, int32_t tap, Deadline deadline) {
  // The guest hears nothing that it could not answer.
  GANTRY_CHECK_OK(net::Redirect(socket, tap, interface, deadline));
  return net::Redirect(socket, interface, tap, deadline);
}

/// The namespace is not there any more, or not the one that it was.
bool IsGone(const Error& error) {
  return error.code == Code::kNotFound || error.code == Code::kFailedPrecondition ||
         error.code == Code::kInvalidArgument;
}

void Keep(Status& first, Status next) {
  if (first && !next) {
    first = std::move(next);
  }
}

template <class T>
void Append(const std::vector<T>& more, std::vector<T>& all) {
  all.insert(all.end(), more.begin(), more.end());
}

ContainerMetrics::Traffic TrafficOf(const net::LinkTraffic& traffic) {
  return {.bytes = traffic.bytes,
          .packets = traffic.packets,
          .errors = traffic.errors,
          .dropped = traffic.dropped};
}

}  // namespace

/// The steps of `Connect`.
class NetworkMaker {
 public:
  NetworkMaker(Network& network, const NetworkRequest& request, net::Netns netns,
               net::RouteSocket socket)
      : network_(network),
        request_(request),
        netns_(std::move(netns)),
        socket_(std::move(socket)) {}

  Status Make(const PodNetwork& pod) {
    GANTRY_TRY(const std::vector<LinkInfo> links, net::ReadLinks(socket_, deadline_));
    GANTRY_CHECK_OK(CheckTakeover(pod, links));
    GANTRY_TRY(network_.rules_, ReadRules(socket_, deadline_));
    GANTRY_TRY(network_.neighbours_, ReadGateways(socket_, pod, deadline_));
    for (const PodNetwork::Link& link : pod.links) {
      if (!link.loopback) {
        GANTRY_CHECK_OK(
            AboutLink("clear", link.name, RemoveLeftovers(socket_, link, links, deadline_)));
        GANTRY_CHECK_OK(AboutLink("hand over", link.name, HandOver(link)));
      }
    }
    for (const PodNetwork::Link& link : pod.links) {
      Tell(pod, link);
    }
    return {};
  }

 private:
  Status HandOver(const PodNetwork::Link& link) {
    net::TapRequest wanted{
        .name = TapNameOf(link.index), .mtu = link.mtu, .owner = request_.tap_user};
    GANTRY_TRY(net::Tap tap, net::MakeTap(netns_, socket_, wanted, deadline_));
    network_.pairs_.push_back(
        {.interface = link.name, .index = link.index, .tap = wanted.name, .tap_index = tap.index});
    Nic nic;
    nic.id = Format("net{}", network_.nics_.size());
    nic.mac = MacText(link.mac);
    nic.mtu = link.mtu;
    nic.tap = std::move(tap.fd);
    nic.tap_name = std::move(wanted.name);
    network_.nics_.push_back(std::move(nic));
    return Join(socket_, link.index, tap.index, deadline_);
  }

  /// Of the loopback what the guest's has not by itself.
  void Tell(const PodNetwork& pod, const PodNetwork::Link& link) {
    if (protocol::Interface told = InterfaceOf(link); !link.loopback || !told.addresses.empty()) {
      network_.interfaces_.push_back(std::move(told));
    }
    for (const PodNetwork::Route& route : link.routes) {
      if (protocol::Route told = RouteOf(pod, link, route);
          !link.loopback || told.protocol != RTPROT_KERNEL) {
        network_.routes_.push_back(std::move(told));
      }
    }
    for (const PodNetwork::Neighbour& neighbour : link.neighbours) {
      network_.neighbours_.push_back(NeighbourOf(link, neighbour));
    }
  }

  Network& network_;
  const NetworkRequest& request_;
  const net::Netns netns_;
  net::RouteSocket socket_;
  const Deadline deadline_ = Soon();
};

Result<Network> Network::Connect(const NetworkRequest& request) {
  Network network;
  GANTRY_TRY(const PodNetwork pod, net::ReadNetwork(request.netns));
  if (request.netns.empty()) {
    return network;
  }
  network.netns_ = request.netns;
  network.inode_ = pod.netns;
  Status made = [&]() -> Status {
    GANTRY_TRY(net::Netns netns, net::Netns::Reopen(request.netns, pod.netns));
    GANTRY_TRY(net::RouteSocket socket, net::RouteSocket::In(netns));
    return NetworkMaker(network, request, std::move(netns), std::move(socket)).Make(pod);
  }();
  if (!made) {
    IgnoreError(network.Disconnect(), "what is left is replaced when it is tried again");
    return std::unexpected(
        std::move(made).error().Within(Format("connect the network of '{}'", request.netns)));
  }
  return network;
}

std::vector<Nic> Network::TakeNics() { return std::exchange(nics_, {}); }

void Network::FillSetUp(protocol::SetUp& set_up) const {
  Append(interfaces_, set_up.interfaces);
  Append(routes_, set_up.routes);
  Append(neighbours_, set_up.neighbours);
  Append(rules_, set_up.rules);
}

Result<std::vector<ContainerMetrics::Interface>> Network::Interfaces() const {
  std::vector<ContainerMetrics::Interface> all;
  if (pairs_.empty()) {
    return all;
  }
  const auto read = [this]() -> Result<std::vector<LinkInfo>> {
    GANTRY_TRY(const net::Netns netns, net::Netns::Reopen(netns_, inode_));
    GANTRY_TRY(net::RouteSocket socket, net::RouteSocket::In(netns));
    return net::ReadLinks(socket, Soon());
  };
  GANTRY_TRY(const std::vector<LinkInfo> links, net::About("count the traffic of", netns_, read()));
  for (const Pair& pair : pairs_) {
    const auto link = std::ranges::find(links, pair.index, &LinkInfo::index);
    if (link == links.end()) {
      continue;
    }
    ContainerMetrics::Interface one{.name = pair.interface,
                                    .received = TrafficOf(link->received),
                                    .sent = TrafficOf(link->sent)};
    // What a guest does not take in time is dropped on its way.
    if (const auto tap = std::ranges::find(links, pair.tap_index, &LinkInfo::index);
        tap != links.end()) {
      one.received.dropped += tap->sent.dropped;
    }
    all.push_back(std::move(one));
  }
  return all;
}

Status Network::Disconnect() {
  nics_.clear();
  if (pairs_.empty()) {
    return {};
  }
  auto netns = net::Netns::Reopen(netns_, inode_);
  if (!netns) {
    if (!IsGone(netns.error())) {
      return net::About("disconnect the network of", netns_,
                        Status(std::unexpected(std::move(netns).error())));
    }
    pairs_.clear();
    return {};
  }
  auto socket = net::RouteSocket::In(*netns);
  if (!socket) {
    return net::About("disconnect the network of", netns_,
                      Status(std::unexpected(std::move(socket).error())));
  }
  Status done;
  const Deadline deadline = Soon();
  for (const Pair& pair : pairs_) {
    Keep(done, AboutLink("free", pair.interface, net::EndRedirect(*socket, pair.index, deadline)));
    Keep(done, AboutLink("remove", pair.tap, net::RemoveLink(*socket, pair.tap_index, deadline)));
  }
  if (!done) {
    return net::About("disconnect the network of", netns_, std::move(done));
  }
  pairs_.clear();
  return {};
}

}  // namespace gantry::vmm
