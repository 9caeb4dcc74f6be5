// SPDX-License-Identifier: Apache-2.0
//
// fake-remote-sandbox: the process that stands for a sentry or for a virtual
// machine with its agent. Descriptor 3 is the door (message.h).
#include <fcntl.h>

#include "tests/contract/remote/server/sandbox.h"

int main() {
  gantry::UniqueFd door(gantry::remote::kDoorFd);
  if (fcntl(door.get(), F_SETFD, FD_CLOEXEC) != 0) {
    return 2;
  }
  return gantry::remote::FakeSandbox(std::move(door)).Run();
}
