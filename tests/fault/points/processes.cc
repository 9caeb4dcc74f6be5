// SPDX-License-Identifier: Apache-2.0
//
// Points: descriptors, signals, and the calls that the C library has no function for.
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "tests/fault/points/point.h"

namespace {

using gantry::fault::Fails;
using gantry::fault::kDescriptor;
using gantry::fault::kEffect;
using gantry::fault::kSpace;
using gantry::fault::ObjectOf;
using gantry::fault::Real;

bool SystemCallFails(long number, long second) {
  switch (number) {
    case SYS_pidfd_send_signal:
      return Fails("signal", "", kEffect);
    case SYS_move_mount:
      return Fails("mount", "*", kEffect);
    case SYS_openat2:
      return Fails("open", ObjectOf(reinterpret_cast<const char*>(second)), kDescriptor);
    case SYS_pidfd_open:
      return Fails("pidfd", "", kDescriptor);
    case SYS_open_tree:
      return Fails("open_tree", "", kDescriptor);
    default:
      return false;
  }
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

long syscall(long number, ...) noexcept {
  va_list more;
  va_start(more, number);
  const long a = va_arg(more, long);
  const long b = va_arg(more, long);
  const long c = va_arg(more, long);
  const long d = va_arg(more, long);
  const long e = va_arg(more, long);
  const long f = va_arg(more, long);
  va_end(more);
  // Without a guard: who waits for one calls this function.
  using Function = long (*)(long, ...);
  static constinit std::atomic<Function> known = nullptr;
  Function real = known.load(std::memory_order_acquire);
  if (real == nullptr) {
    real = Real<Function>("syscall");
    known.store(real, std::memory_order_release);
  }
  return SystemCallFails(number, b) ? -1 : real(number, a, b, c, d, e, f);
}

int kill(pid_t pid, int signal) noexcept {
  static const auto real = Real<decltype(&kill)>("kill");
  return signal != 0 && Fails("signal", "", kEffect) ? -1 : real(pid, signal);
}

int memfd_create(const char* name, unsigned int flags) noexcept {
  static const auto real = Real<decltype(&memfd_create)>("memfd_create");
  return Fails("memfd", ObjectOf(name), kDescriptor) ? -1 : real(name, flags);
}

int pipe2(int* ends, int flags) noexcept {
  static const auto real = Real<decltype(&pipe2)>("pipe2");
  return Fails("pipe", "", kDescriptor) ? -1 : real(ends, flags);
}

int dup(int fd) noexcept {
  static const auto real = Real<decltype(&dup)>("dup");
  return Fails("dup", "", kDescriptor) ? -1 : real(fd);
}

int fcntl(int fd, int command, ...) {
  va_list more;
  va_start(more, command);
  const long argument = va_arg(more, long);
  va_end(more);
  static const auto real = Real<int (*)(int, int, ...)>("fcntl");
  const bool duplicates = command == F_DUPFD || command == F_DUPFD_CLOEXEC;
  return duplicates && Fails("dup", "", kDescriptor) ? -1 : real(fd, command, argument);
}

}  // extern "C"
#pragma GCC visibility pop
