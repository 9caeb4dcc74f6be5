// SPDX-License-Identifier: Apache-2.0
//
// What a terminal makes of the characters that are typed, and when.
#pragma once

#include <gantry/error.h>

namespace gantry::os {

/// Characters with a meaning of their own, as the settings are now; -1: there is none.
/// Source: termios(3); the order of their meanings: Linux 6.18, drivers/tty/n_tty.c.
struct ControlCharacters {
  /// SIGINT, SIGQUIT and SIGTSTP; only with ISIG.
  int interrupt = -1;
  int quit = -1;
  int suspend = -1;
  /// The next character has no meaning but itself; only with ICANON and IEXTEN.
  int literal_next = -1;
};

/// `fd`: either side of a terminal. Blocks: never.
Result<ControlCharacters> ControlCharactersOf(int fd);

/// What has been written to the side of `master` has its effects when this returns: echoed,
/// turned into signals, and what waited to be read or shown thrown away for them. Otherwise a
/// worker of the kernel's does that soon, and throws away what programs have written since.
/// Where programs leave input unread it returns at once.
/// Source: Linux 6.18, drivers/tty/n_tty.c (isig, n_tty_poll). Blocks: for that worker.
Status SettleInput(int master);

}  // namespace gantry::os
