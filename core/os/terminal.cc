// SPDX-License-Identifier: Apache-2.0
#include "core/os/terminal.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>

#include <gantry/unique_fd.h>

#include "core/os/poll.h"

namespace gantry::os {

Result<ControlCharacters> ControlCharactersOf(int fd) {
  termios settings{};
  if (tcgetattr(fd, &settings) < 0) {
    return FailErrno(errno, "read a terminal's settings");
  }
  ControlCharacters characters;
  if ((settings.c_lflag & EXTPROC) != 0) {
    return characters;  // Who types has done all of this already.
  }
  const auto of = [&settings](size_t index) {
    const cc_t character = settings.c_cc[index];
    return character == _POSIX_VDISABLE ? -1 : int{character};
  };
  if ((settings.c_lflag & ISIG) != 0) {
    characters.interrupt = of(VINTR);
    characters.quit = of(VQUIT);
    characters.suspend = of(VSUSP);
  }
  if ((settings.c_lflag & ICANON) != 0 && (settings.c_lflag & IEXTEN) != 0) {
    characters.literal_next = of(VLNEXT);
  }
  return characters;
}

Status SettleInput(int master) {
  const UniqueFd slave(ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!slave) {
    return FailErrno(errno, "open the other side of a terminal");
  }
  GANTRY_CHECK_OK(Poll(slave.get(), EPOLLIN, {}));
  return {};
}

}  // namespace gantry::os
