// SPDX-License-Identifier: Apache-2.0
//
// A tap: an interface of a network namespace whose other end is a descriptor, for a virtual
// machine monitor. Source: Linux, Documentation/networking/tuntap.rst, drivers/net/tun.c.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/toolkit/net/netlink.h>
#include <gantry/toolkit/net/netns.h>
#include <gantry/unique_fd.h>

namespace gantry::net {

struct TapRequest {
  /// 1 to 15 bytes.
  std::string name{};
  uint32_t mtu = 1500;
  /// Who opens it later, by its name: it stays until it is removed. None: it is there as long as
  /// the descriptor or a copy of it.
  std::optional<uid_t> owner{};
};

struct Tap {
  /// Does not block, with a virtio-net header (IFF_VNET_HDR) and one queue. None where it has an
  /// owner.
  UniqueFd fd;
  int32_t index = 0;
};

/// Started, without an address. `socket`: of that namespace.
/// Errors: kAlreadyExists: there is an interface of that name; kFailedPrecondition: the node has no
/// TUN; the kernel's. Thread: any.
Result<Tap> MakeTap(const Netns& netns, RouteSocket& socket, const TapRequest& request,
                    Deadline deadline);

}  // namespace gantry::net
