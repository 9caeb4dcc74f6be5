// SPDX-License-Identifier: Apache-2.0
//
// Where a program without a C library begins. To be included by the one source of such a program
// that defines `Run`.
#pragma once

namespace gantry::freestanding {

/// The program. `count` arguments, its name among them; behind them is a null.
[[noreturn]] void Run(long count, char** arguments);

}  // namespace gantry::freestanding

/// The stack begins with argc, then argv. Source: System V ABI, process initialization.
extern "C" [[noreturn, gnu::used]] inline void Main(long* stack) {
  gantry::freestanding::Run(*stack, reinterpret_cast<char**>(stack + 1));
}

#if defined(__x86_64__)
asm(".globl _start\n_start:\n  xor %ebp, %ebp\n  mov %rsp, %rdi\n  and $-16, %rsp\n  call Main\n");
#else
asm(".globl _start\n_start:\n  mov x0, sp\n  bl Main\n");
#endif
