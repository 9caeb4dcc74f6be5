// SPDX-License-Identifier: Apache-2.0
//
// What a program without a C library needs: system calls, its arguments and its end. To be
// included by the one source of such a program.
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

[[noreturn]] inline void End(long status) {
  for (;;) {
    Call(SYS_exit_group, status);
  }
}

/// The program, which the source defines. `count` arguments, its name among them.
[[noreturn]] void Run(long count, const char* const* arguments);

}  // namespace gantry::freestanding

/// The stack begins with argc, then argv. Source: System V ABI, process initialization.
extern "C" [[noreturn, gnu::used]] inline void Main(const long* stack) {
  gantry::freestanding::Run(*stack, reinterpret_cast<const char* const*>(stack + 1));
}

#if defined(__x86_64__)
asm(".globl _start\n_start:\n  xor %ebp, %ebp\n  mov %rsp, %rdi\n  and $-16, %rsp\n  call Main\n");
#else
asm(".globl _start\n_start:\n  mov x0, sp\n  bl Main\n");
#endif
