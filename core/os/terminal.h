// SPDX-License-Identifier: Apache-2.0
//
// What a terminal's settings make of the characters that are typed.
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

}  // namespace gantry::os
