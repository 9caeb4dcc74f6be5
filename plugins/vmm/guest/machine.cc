// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/guest/machine.h"

#include <linux/vm_sockets.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/mount/unmount.h>

#include "plugins/vmm/guest/first.h"
#include "plugins/vmm/guest/mounts.h"
#include "plugins/vmm/guest/online.h"
#include "plugins/vmm/guest/set_up.h"

namespace gantry::vmm::guest {

Result<UniqueFd> Machine::Dial(uint32_t port) {
  UniqueFd socket(::socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) {
    return FailErrno(errno, "make a vsock socket");
  }
  sockaddr_vm host{};
  host.svm_family = AF_VSOCK;
  host.svm_cid = VMADDR_CID_HOST;
  host.svm_port = port;
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&host), sizeof(host)) != 0 &&
      errno != EINPROGRESS) {
    return FailErrno(errno, "dial port {} of the host", port);
  }
  return socket;
}

Status Machine::SetUp(const protocol::SetUp& request) { return SetUpMachine(request); }

Status Machine::Attach(const protocol::Attach& request) { return AttachMounts(request); }

Status Machine::Detach(const protocol::Detach& request) { return DetachMounts(request); }

Result<protocol::OnlineAnswer> Machine::Online(const protocol::Online& request) {
  return BringOnline(request);
}

void Machine::Sync() {
  ::sync();
  IgnoreError(mount::UnmountTree(kGuestFolder), "what is busy was synced, and is again");
  ::sync();
}

void Machine::PowerOff() {
  const auto words = ReadFile("/proc/cmdline", 4096);
  const bool again = words && words->contains("gantry.off=reboot");
  ::reboot(again ? RB_AUTOBOOT : RB_POWER_OFF);
}

}  // namespace gantry::vmm::guest
