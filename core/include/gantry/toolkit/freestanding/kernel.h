// SPDX-License-Identifier: Apache-2.0
//
// Calls of the kernel without a C library. For the small programs that plugins start on the host
// and in sandboxes, which share this folder and nothing else.
#pragma once

#include <sys/syscall.h>

namespace gantry::freestanding {

/// Minus the errno, where it fails.
#if defined(__x86_64__)
// NOLINTNEXTLINE(readability-function-size): a system call has up to six arguments.
inline long Call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                 long f = 0) {
  long result = number;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
// NOLINTNEXTLINE(readability-function-size): the same.
inline long Call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                 long f = 0) {
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  register long x5 asm("x5") = f;
  asm volatile("svc 0"
               : "+r"(x0)
               : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
               : "memory");
  return x0;
}
#else
#error "which machine is this?"
#endif

inline long Address(const void* pointer) { return reinterpret_cast<long>(pointer); }

inline unsigned long LengthOf(const char* text) {
  unsigned long length = 0;
  while (text[length] != '\0') {
    ++length;
  }
  return length;
}

[[noreturn]] inline void End(long status) {
  for (;;) {
    Call(SYS_exit_group, status);
  }
}

inline constexpr long kErrnoIntr = -4;
inline constexpr long kErrnoInvalid = -22;
/// AT_FDCWD.
inline constexpr long kAtCwd = -100;

}  // namespace gantry::freestanding
