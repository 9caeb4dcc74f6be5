// SPDX-License-Identifier: Apache-2.0
#include "core/os/terminal.h"

#include <termios.h>
#include <unistd.h>

#include <cerrno>

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

}  // namespace gantry::os
