// SPDX-License-Identifier: Apache-2.0
//
// Looks at typed bytes without taking them: tee(2) copies them into a pipe of our own, and from
// there they are read. Only bytes up to the first signal's character may be moved, so that the
// signal is told between what was typed before and after it. `Moved` goes over the same bytes
// again, as the terminal took fewer than there were.
#include "core/io/typed_signals.h"

#include <csignal>

#include <gantry/toolkit/descriptors/pipe.h>
#include <gantry/toolkit/descriptors/unix_socket.h>

#include "core/os/splice.h"

namespace gantry::io {

Result<std::unique_ptr<TypedSignals>> TypedSignals::Make() {
  GANTRY_TRY(auto pipe, MakePipe());
  return std::unique_ptr<TypedSignals>(new TypedSignals(std::move(pipe)));
}

Result<Transfer> TypedSignals::Peek(int fifo, int terminal) {
  seen_ = {};
  // Where it is gone the move says so.
  characters_ = os::ControlCharactersOf(terminal).value_or(os::ControlCharacters());
  if (characters_.literal_next < 0) {
    literal_ = false;
  }
  GANTRY_TRY(Transfer next, os::Tee(fifo, write_end_.get(), buffer_.size()));
  if (next.bytes == 0) {
    return next;
  }
  GANTRY_TRY(const Transfer copy, os::ReadSome(read_end_.get(), buffer_));
  seen_ = std::span(buffer_).first(copy.bytes);
  next.bytes = LengthToFirstSignal();
  return next;
}

int TypedSignals::SignalOf(char character, bool& literal) const {
  if (std::exchange(literal, false)) {
    return 0;
  }
  const int code = static_cast<unsigned char>(character);
  if (code == characters_.interrupt) {
    return SIGINT;
  }
  if (code == characters_.quit) {
    return SIGQUIT;
  }
  if (code == characters_.suspend) {
    return SIGTSTP;
  }
  literal = code == characters_.literal_next;
  return 0;
}

size_t TypedSignals::LengthToFirstSignal() const {
  bool literal = literal_;
  for (size_t i = 0; i < seen_.size(); ++i) {
    if (SignalOf(seen_[i], literal) != 0) {
      return i + 1;
    }
  }
  return seen_.size();
}

int TypedSignals::Moved(size_t bytes) {
  int signal = 0;
  for (const char character : seen_.first(bytes)) {
    signal = SignalOf(character, literal_);
  }
  seen_ = seen_.subspan(bytes);
  return signal;
}

}  // namespace gantry::io
