// SPDX-License-Identifier: Apache-2.0
//
// Signals that a user types into a terminal which is nobody's controlling
// terminal here: its other side was given to a sentry or a guest. The kernel makes
// none of ^C, ^\ and ^Z then, since it knows no process to send them to. So what
// is on its way to such a terminal is looked at before it moves.
//
// The bytes stay in the fifo meanwhile: tee(2) makes a copy of them in a pipe of
// this object, and the copy is read and forgotten. Then as many are moved as may go
// at once, up to and including the first character that makes a signal, and the
// signal is told; the next look is at the settings as they are then. So an engine
// that is killed at any moment loses no byte. One that is killed after the character
// has moved and before the signal is told loses the signal: no user knows of it but
// by trying again, as with a key that was not hit.
//
// Only what comes from a fifo can be looked at like this, and all input of
// terminals does: no other URI of containerd's names one.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include <gantry/error.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/unique_fd.h>

#include "core/os/terminal.h"

namespace gantry::io {

/// Thread: one at a time.
class TypedSignals {
 public:
  static Result<std::unique_ptr<TypedSignals>> Make();
  TypedSignals(const TypedSignals&) = delete;
  TypedSignals& operator=(const TypedSignals&) = delete;
  ~TypedSignals() = default;

  /// How many of the next bytes in `fifo` may be moved to `terminal`, a master, at once.
  /// Blocks: never.
  Result<Transfer> Peek(int fifo, int terminal);

  /// So many of those that were seen have been moved: none after the first that makes a
  /// signal. The signal of the last one; 0: it makes none.
  int Moved(size_t bytes);

 private:
  explicit TypedSignals(std::pair<UniqueFd, UniqueFd> pipe)
      : read_end_(std::move(pipe.first)), write_end_(std::move(pipe.second)) {}

  /// What `character` does after what came before it.
  int SignalOf(char character, bool& literal) const;
  size_t LengthToFirstSignal() const;

  UniqueFd read_end_;
  UniqueFd write_end_;
  os::ControlCharacters characters_;
  /// The next byte to be moved has no meaning but itself.
  bool literal_ = false;
  /// A terminal takes no more at once.
  std::array<char, 4096> buffer_{};
  /// Seen and not moved yet.
  std::span<const char> seen_;
};

}  // namespace gantry::io
