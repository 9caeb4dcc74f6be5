// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include <cerrno>

#include <gantry/toolkit/descriptors/terminal.h>

namespace gantry {

Result<Terminal> Terminal::Open() {
  Terminal terminal;
  terminal.master.reset(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!terminal.master || grantpt(terminal.master.get()) != 0 ||
      unlockpt(terminal.master.get()) != 0) {
    return FailErrno(errno, "make a terminal");
  }
  terminal.replica.reset(ioctl(terminal.master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!terminal.replica) {
    return FailErrno(errno, "open the replica of a terminal");
  }
  return terminal;
}

}  // namespace gantry
