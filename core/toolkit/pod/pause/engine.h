// SPDX-License-Identifier: Apache-2.0
//
// What the engine is told, on a descriptor that is a socket to it.
#pragma once

#include <gantry/toolkit/freestanding/kernel.h>

namespace gantry::pause {

using freestanding::Address;
using freestanding::Call;
using freestanding::End;

constexpr int kEngine = 3;

/// A short line for the engine.
class Line {
 public:
  void Add(const char* text) {
    for (; *text != '\0' && used_ < sizeof(text_); ++text) {
      text_[used_++] = *text;
    }
  }

  void Add(long number) {
    char digits[20];
    int count = 0;
    do {
      digits[count++] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
    while (count > 0 && used_ < sizeof(text_)) {
      text_[used_++] = digits[--count];
    }
  }

  void Send() const { Call(SYS_write, kEngine, Address(text_), static_cast<long>(used_)); }

 private:
  char text_[160] = {};
  unsigned long used_ = 0;
};

[[noreturn]] inline void Fail(const char* step, long result) {
  Line line;
  line.Add("!");
  line.Add(step);
  line.Add(" ");
  line.Add(-result);
  line.Add("\n");
  line.Send();
  End(1);
}

inline long Require(const char* step, long result) {
  if (result < 0) {
    Fail(step, result);
  }
  return result;
}

}  // namespace gantry::pause
