// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <utility>

#include <gantry/toolkit/net/link.h>
#include <gantry/toolkit/net/tap.h>

namespace gantry::net {
namespace {

constexpr const char* kTunDevice = "/dev/net/tun";

Result<UniqueFd> OpenTun(const Netns& netns) {
  auto tun = netns.OpenFile(kTunDevice, O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (!tun && (tun.error().code == Code::kNotFound || tun.error().sys_errno == ENXIO ||
               tun.error().sys_errno == ENODEV)) {
    return Fail(Code::kFailedPrecondition,
                "{}: this node has no TUN: load the kernel's module 'tun'", tun.error().message);
  }
  return tun;
}

Result<int32_t> IndexOf(const RouteSocket& socket, const std::string& name) {
  ifreq request{};
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  if (ioctl(socket.fd().get(), SIOCGIFINDEX, &request) != 0) {
    return FailErrno(errno, "look for it");
  }
  return request.ifr_ifindex;
}

/// It stays when its descriptor is closed.
Status GiveTo(const UniqueFd& tun, uid_t owner) {
  // Both take a number in place of an address.
  if (ioctl(tun.get(), TUNSETOWNER, static_cast<unsigned long>(owner)) != 0 ||
      ioctl(tun.get(), TUNSETPERSIST, 1UL) != 0) {
    return FailErrno(errno, "give it to user {}", owner);
  }
  return {};
}

/// Where it fails nothing is left: the descriptor is the only one.
Result<Tap> Make(const Netns& netns, RouteSocket& socket, const TapRequest& wanted,
                 Deadline deadline) {
  if (wanted.name.empty() || wanted.name.size() >= IFNAMSIZ) {
    return Fail(Code::kInvalidArgument, "the name has {} bytes", wanted.name.size());
  }
  Tap tap;
  GANTRY_TRY(tap.fd, OpenTun(netns));
  ifreq request{};
  wanted.name.copy(request.ifr_name, IFNAMSIZ - 1);
  request.ifr_flags = static_cast<short>(IFF_TAP | IFF_NO_PI | IFF_VNET_HDR | IFF_TUN_EXCL);
  if (ioctl(tap.fd.get(), TUNSETIFF, &request) != 0) {
    // What is no tap at all is EINVAL, for which there is no other reason.
    if (errno == EBUSY || errno == EINVAL || errno == EEXIST) {
      return Fail(Code::kAlreadyExists, "there is another interface of that name");
    }
    return FailErrno(errno, "make it");
  }
  GANTRY_TRY(tap.index, IndexOf(socket, wanted.name));
  GANTRY_CHECK_OK(KeepWithoutAddress(socket, tap.index, deadline));
  GANTRY_CHECK_OK(StartLink(socket, tap.index, wanted.mtu, deadline));
  if (wanted.owner) {
    GANTRY_CHECK_OK(GiveTo(tap.fd, *wanted.owner));
    tap.fd.reset();
  }
  return tap;
}

}  // namespace

Result<Tap> MakeTap(const Netns& netns, RouteSocket& socket, const TapRequest& request,
                    Deadline deadline) {
  return About("make tap", request.name, Make(netns, socket, request, deadline));
}

}  // namespace gantry::net
