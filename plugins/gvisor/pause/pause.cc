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

#include <gantry/toolkit/freestanding/kernel.h>
#include <gantry/toolkit/freestanding/start.h>

namespace gantry::freestanding {
namespace {

constexpr long kSignalSetSize = 8;
constexpr long kNoWait = 1;  // WNOHANG

unsigned long Bit(int signal) { return 1UL << (signal - 1); }

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

[[noreturn]] void Run(long count, char** arguments) {
  if (count > 1) {
    const char* const name = arguments[1];
    End(-Call(SYS_sethostname, Address(name), static_cast<long>(LengthOf(name))));
  }
  Reap();
}

}  // namespace gantry::freestanding
