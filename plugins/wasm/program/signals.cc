// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/program/signals.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace gantry::wasm {
namespace {

// Ample for a handler that calls one function, also where the processor's registers are many.
// A guest may have used its own stack up.
constexpr size_t kStackBytes = size_t{64} << 10;
alignas(16) char handler_stack[kStackBytes];

// The system call itself: a sanitizer has more to do at an end than a handler may.
void End(int signal) { ::syscall(SYS_exit_group, 128 + signal); }

}  // namespace

Status EndOnSignals() {
  stack_t stack{};
  stack.ss_sp = handler_stack;
  stack.ss_size = sizeof(handler_stack);
  if (::sigaltstack(&stack, nullptr) != 0) {
    return FailErrno(errno, "have a stack for signals");
  }
  struct sigaction end{};
  end.sa_handler = End;
  end.sa_flags = SA_ONSTACK;
  sigfillset(&end.sa_mask);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
    if (::sigaction(signal, &end, nullptr) != 0) {
      return FailErrno(errno, "handle signal {}", signal);
    }
  }
  struct sigaction ignore{};
  ignore.sa_handler = SIG_IGN;
  if (::sigaction(SIGPIPE, &ignore, nullptr) != 0) {
    return FailErrno(errno, "ignore SIGPIPE");
  }
  return {};
}

}  // namespace gantry::wasm
