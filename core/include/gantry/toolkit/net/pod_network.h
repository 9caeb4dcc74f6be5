// SPDX-License-Identifier: Apache-2.0
//
// What there is in a pod's network namespace: what a network stack of a sandbox's own is told of
// it, and the kernel's own messages, which put back what was taken away.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>

namespace gantry::net {

/// Of a `PodNetwork` as text.
inline constexpr size_t kMaxPodNetworkBytes = size_t{48} << 10;

inline constexpr size_t kV4Bytes = 4;
inline constexpr size_t kV6Bytes = 16;
inline constexpr size_t kMacBytes = 6;

/// Addresses are 4 or 16 bytes, as they are on the wire. `message` is what rtnetlink gave
/// (RTM_NEWADDR and so on, without nlmsghdr); all else is read from it.
struct PodNetwork {
  struct Address {
    std::string message;
    int32_t interface = 0;
    std::string ip;
    uint8_t prefix = 0;

    /// None: the message is of something else.
    static std::optional<Address> From(std::string message);
    bool operator==(const Address&) const = default;
  };

  /// A unicast route; those of the table `local` are the kernel's own and not here.
  struct Route {
    std::string message;
    /// Of several next hops, the first one's.
    int32_t interface = 0;
    /// All zeros and prefix 0: a default route.
    std::string destination;
    uint8_t prefix = 0;
    /// Empty: the destination is on the link itself.
    std::string gateway;
    uint32_t metric = 0;
    /// 0: the link's.
    uint32_t mtu = 0;
    /// It needs no other route.
    bool on_link = false;
    /// There is another way than `gateway`, a source, or a table of its own: nothing that a
    /// simple stack could follow.
    bool special = false;

    static std::optional<Route> From(std::string message);
    bool operator==(const Route&) const = default;
  };

  /// A permanent one.
  struct Neighbour {
    std::string message;
    int32_t interface = 0;
    std::string ip;
    std::string mac;

    static std::optional<Neighbour> From(std::string message);
    bool operator==(const Neighbour&) const = default;
  };

  struct Link {
    std::string name;
    int32_t index = 0;
    uint32_t mtu = 0;
    /// Six bytes; empty: it has none.
    std::string mac;
    bool loopback = false;
    /// What the device segments itself; 0: nothing.
    uint32_t gso_max_bytes = 0;
    std::vector<Address> addresses;
    std::vector<Route> routes;
    std::vector<Neighbour> neighbours;

    bool operator==(const Link&) const = default;
  };

  /// The inode of the namespace; 0: nothing but a loopback was asked for.
  uint64_t netns = 0;
  /// Those that are up and have addresses, and the loopback, in the order of their indices.
  std::vector<Link> links;

  Link* Find(int32_t index);
  /// There is something to be taken from the host.
  bool HasInterfaces() const;

  /// One line of JSON.
  std::string ToJson() const;
  /// Errors: kDataLoss.
  static Result<PodNetwork> FromJson(std::string_view text);
  bool operator==(const PodNetwork&) const = default;
};

/// "10.0.0.2", of 4 or 16 bytes.
std::string IpText(std::string_view ip);

}  // namespace gantry::net
