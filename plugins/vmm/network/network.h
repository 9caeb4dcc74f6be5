// SPDX-License-Identifier: Apache-2.0
//
// The network of a sandbox whose containers have a kernel of their own. CNI has made the pod's
// network namespace ready for the node's kernel; beside each interface in it there comes a tap, the
// VMM's, and whatever arrives at one of the two leaves by the other (toolkit/net/redirect.h). The
// guest's interface has the MAC, MTU, addresses, routes and neighbours of the pod's, and so takes
// its place: the node's kernel keeps the configuration (CNI's CHECK and DEL find what they expect)
// and sees no packet any more. A process of the node in that namespace has no network but its
// loopback.
//
// What a guest cannot take over is refused by name before anything is changed: the host's network,
// interfaces without Ethernet, without ARP, with the MAC of another one (ipvlan), on top of each
// other, and routes that the guest is not told how to make.
//
// Taps belong to who has them open: when the VMM ends they are gone (but those of a VMM that opens
// them by name). `Disconnect` removes the rest. A namespace that is gone has taken all of it along.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>
#include <gantry/metrics.h>

#include "plugins/vmm/hypervisor/vm_config.h"
#include "plugins/vmm/protocol/messages.h"

namespace gantry::vmm {

struct NetworkRequest {
  /// Path of the pod's network namespace; empty: it has none, and the guest gets its loopback
  /// alone.
  std::string netns{};
  /// The VMM opens taps itself, by name, in that namespace, as this user (`Traits::tap_by_name`);
  /// they stay until `Disconnect`. None: it gets descriptors.
  std::optional<uid_t> tap_user{};
};

class NetworkMaker;

/// Thread: any, one at a time. Blocks: up to `net::kNetlinkTime`.
class Network {
 public:
  /// Makes taps and redirections; what an earlier try has left there is replaced. On failure
  /// nothing is left.
  /// Errors: kNotFound; kInvalidArgument: no network namespace; kFailedPrecondition: the host's, or
  /// something in it cannot be handed to a guest, and what, and what to use instead; or the node
  /// lacks TUN, or the traffic control that it takes; kDeadlineExceeded.
  static Result<Network> Connect(const NetworkRequest& request);
  /// That of an engine before, as `Save` wrote it; touches nothing. It has no NICs to take, and
  /// `FillSetUp` adds nothing. Errors: kDataLoss.
  static Result<Network> Recover(std::string_view saved);
  /// One line of JSON: what `Disconnect` and `Interfaces` need, at most 16 KiB.
  std::string Save() const;

  Network(Network&&) = default;
  Network& operator=(Network&&) = default;
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  ~Network() = default;

  /// For the VM: one for each interface, with ids "net0" and so on. Once.
  std::vector<Nic> TakeNics();
  /// Adds interfaces, routes, rules and neighbours; for each SetUp of the same guest.
  void FillSetUp(protocol::SetUp& set_up) const;

  /// Counters of the pod's interfaces as the pod sees them: also while the guest does not answer.
  /// Errors: the kernel's; kNotFound: the namespace is gone.
  Result<std::vector<ContainerMetrics::Interface>> Interfaces() const;

  /// Removes taps and redirections: the pod's namespace is as CNI made it. Again: success, as for a
  /// namespace or an interface that is gone. Errors: the kernel's; then the rest is removed all the
  /// same.
  Status Disconnect();

  /// Of the pod's network namespace; empty: it has none.
  const std::string& netns() const { return netns_; }

 private:
  friend class NetworkMaker;

  /// A pod's interface and the tap beside it.
  struct Pair {
    std::string interface{};
    int32_t index = 0;
    std::string tap{};
    int32_t tap_index = 0;
  };

  Network() = default;

  std::string netns_;
  uint64_t inode_ = 0;
  std::vector<Pair> pairs_;
  std::vector<Nic> nics_;
  std::vector<protocol::Interface> interfaces_;
  std::vector<protocol::Route> routes_;
  std::vector<protocol::Neighbour> neighbours_;
  std::vector<std::string> rules_;
};

}  // namespace gantry::vmm
