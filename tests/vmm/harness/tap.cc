// SPDX-License-Identifier: Apache-2.0
#include "tests/vmm/harness/tap.h"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>

#include <cstring>

namespace gantry::vmm {

UniqueFd MakeTap() {
  UniqueFd tap(open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK));
  ifreq request{};
  std::strncpy(request.ifr_name, "gvmt%d", IFNAMSIZ - 1);
  request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
  if (!tap || ioctl(tap.get(), TUNSETIFF, &request) != 0) {
    return UniqueFd();
  }
  return tap;
}

}  // namespace gantry::vmm
