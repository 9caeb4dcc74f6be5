// SPDX-License-Identifier: Apache-2.0
//
// The first process of a pod that brings no pause container: it reaps what is left to it
// and ends with status 0 on SIGTERM or SIGINT. It runs in a sentry, never on the host.
//
//     /pause [NAME]
//
// With NAME it is another process of that pod: it gives the pod this host name, as a sentry
// takes none once it is booted, and ends with status 0 or the errno. For that it must be root
// with CAP_SYS_ADMIN.
//
// Freestanding: no C library, no data, one page of code. Only the system calls of this file.
#include <signal.h>
#include <sys/syscall.h>

namespace {

constexpr long kSignalSetSize = 8;
constexpr long kNoWait = 1;  // WNOHANG

#if defined(__x86_64__)
long Call(long number, long a = 0, long b = 0, long c = 0, long d = 0) {
  long result = number;
  register long r10 asm("r10") = d;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(a), "S"(b), "d"(c), "r"(r10)
               : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
long Call(long number, long a = 0, long b = 0, long c = 0, long d = 0) {
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  asm volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
  return x0;
}
#else
#error "which machine is this?"
#endif

long Address(const void* pointer) { return reinterpret_cast<long>(pointer); }

unsigned long Bit(int signal) { return 1UL << (signal - 1); }

unsigned long LengthOf(const char* text) {
  unsigned long length = 0;
  while (text[length] != '\0') {
    ++length;
  }
  return length;
}

[[noreturn]] void End(long status) {
  for (;;) {
    Call(SYS_exit_group, status);
  }
}

/// Signals are blocked and fetched, never delivered. Whoever is pid 1 never gets one that has
/// no handler on Linux, and ends of it in a sentry; one that is blocked waits to be fetched in
/// both, SIGCHLD as well, whose default is to be ignored.
/// Source: Linux, kernel/signal.c, sig_ignored; gVisor 20240729 and 2026-08,
/// pkg/sentry/kernel/task_signals.go, sendSignalTimerLocked.
[[noreturn]] void Reap() {
  const unsigned long all = ~0UL;
  Call(SYS_rt_sigprocmask, SIG_BLOCK, Address(&all), 0, kSignalSetSize);
  const unsigned long fetched = Bit(SIGTERM) | Bit(SIGINT) | Bit(SIGCHLD);
  for (;;) {
    while (Call(SYS_wait4, -1, 0, kNoWait, 0) > 0) {
    }
    const long signal = Call(SYS_rt_sigtimedwait, Address(&fetched), 0, 0, kSignalSetSize);
    if (signal == SIGTERM || signal == SIGINT) {
      End(0);
    }
  }
}

}  // namespace

extern "C" [[noreturn, gnu::used]] void Main(const long* stack) {
  // argc, then argv. Source: System V ABI, process initialization.
  const char* const* const arguments = reinterpret_cast<const char* const*>(stack + 1);
  if (*stack > 1) {
    const char* const name = arguments[1];
    End(-Call(SYS_sethostname, Address(name), static_cast<long>(LengthOf(name))));
  }
  Reap();
}

#if defined(__x86_64__)
asm(".globl _start\n_start:\n  xor %ebp, %ebp\n  mov %rsp, %rdi\n  and $-16, %rsp\n  call Main\n");
#else
asm(".globl _start\n_start:\n  mov x0, sp\n  bl Main\n");
#endif
