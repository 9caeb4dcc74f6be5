// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/guest/network.h"

#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/net/link.h>
#include <gantry/toolkit/net/message.h>
#include <gantry/toolkit/net/netlink.h>
#include <gantry/toolkit/net/network.h>

#include "plugins/vmm/guest/devices.h"

namespace gantry::vmm::guest {
namespace {

/// For one to come; a guest that is translated on a busy node takes seconds.
constexpr std::chrono::seconds kInterfaceTime{20};

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
        deadline_(std::chrono::steady_clock::now() + kInterfaceTime + net::kNetlinkTime) {}

  /// Until all of these are there: devices of a machine that was restored come when it goes on.
  Status AwaitAll(const std::vector<protocol::Interface>& interfaces) {
    GANTRY_TRY(DeviceEvents events, DeviceEvents::Listen());
    const Deadline deadline = std::chrono::steady_clock::now() + kInterfaceTime;
    for (;;) {
      GANTRY_CHECK_OK(Read());
      const auto missing = std::ranges::find_if(interfaces, [this](const auto& one) {
        return !IsLoopback(one) && one.mac.size() == net::kMacBytes && !by_mac_.contains(one.mac);
      });
      if (missing == interfaces.end()) {
        return {};
      }
      if (!events.Await(deadline)) {
        return Fail(Code::kDeadlineExceeded,
                    "set up interface '{}': none in the guest has its MAC, and none came",
                    missing->name.substr(0, IFNAMSIZ));
      }
    }
  }

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
      if (IsLoopback(one)) {
        continue;
      }
      GANTRY_TRY(Link* const link, Find(one));
      if (link->name != one.name) {
        GANTRY_CHECK_OK(SetLink(*link, 0, Format("gantry{}", link->index), 0));
      }
    }
    for (const protocol::Interface& one : interfaces) {
      if (IsLoopback(one)) {
        continue;
      }
      GANTRY_TRY(Link* const link, Find(one));
      // Its addresses are those of the pod's, no more.
      GANTRY_CHECK_OK(net::KeepWithoutAddress(socket_, link->index, deadline_));
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
    return Fail(Code::kFailedPrecondition, "set up the network: there is no interface '{}'",
                interface);
  }

  Result<std::vector<int32_t>> IndicesOf(const std::vector<protocol::NextHop>& hops) const {
    std::vector<int32_t> indices;
    for (const protocol::NextHop& hop : hops) {
      GANTRY_TRY(const int32_t index, IndexOf(hop.interface));
      indices.push_back(index);
    }
    return indices;
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
  bool IsLoopback(const protocol::Interface& one) const {
    return loopback_ && one.mac.empty() && one.name == loopback_->name;
  }

  Result<Link*> Find(const protocol::Interface& one) {
    if (!IsInterfaceName(one.name) || one.mac.size() != net::kMacBytes) {
      return Fail(Code::kInvalidArgument,
                  "set up the network: an interface with a name of {} and a MAC of {} bytes",
                  one.name.size(), one.mac.size());
    }
    const auto found = by_mac_.find(one.mac);
    if (found == by_mac_.end()) {
      return Fail(Code::kFailedPrecondition, "set up interface '{}': none in the guest has its MAC",
                  one.name);
    }
    return &found->second;
  }

  Status SetLink(Link& link, unsigned flags, const std::string& name, uint32_t mtu) {
    ifinfomsg header{};
    header.ifi_index = link.index;
    header.ifi_flags = flags;
    header.ifi_change = IFF_UP;
    std::string message = net::MessageOf(header);
    if (!name.empty()) {
      net::AddWord(message, IFLA_IFNAME, name);
    }
    if (mtu != 0) {
      net::AddNumber(message, IFLA_MTU, mtu);
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

Status SetUpNetwork(const protocol::SetUp& request) {
  GANTRY_TRY(net::RouteSocket socket, net::RouteSocket::Own());
  Network network(std::move(socket));
  GANTRY_CHECK_OK(network.AwaitAll(request.interfaces));
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
    GANTRY_TRY(const std::vector<int32_t> hops, network.IndicesOf(route.next_hops));
    GANTRY_CHECK_OK(network.Change(RouteChange(index, route, hops)));
  }
  for (const std::string& rule : request.rules) {
    GANTRY_CHECK_OK(network.Change(RuleChange(rule)));
  }
  for (const protocol::Neighbour& neighbour : request.neighbours) {
    GANTRY_TRY(const int32_t index, network.IndexOf(neighbour.interface));
    GANTRY_CHECK_OK(network.Change(NeighbourChange(index, neighbour)));
  }
  return {};
}

}  // namespace gantry::vmm::guest
