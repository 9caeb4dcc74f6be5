// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/points/point.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

namespace gantry::fault {
namespace {

/// The OCI runtime and others inherit the environment.
bool IsEngine() {
  std::array<char, 4096> path;
  const ssize_t size = readlink("/proc/self/exe", path.data(), path.size());
  return size > 0 &&
         ObjectOf(std::string_view(path.data(), static_cast<size_t>(size))) == "gantryd";
}

Control* Map() {
  const char* const path = std::getenv(kFileVariable);
  if (path == nullptr || !IsEngine()) {
    return nullptr;
  }
  const auto fd = static_cast<int>(
      Real<decltype(&syscall)>("syscall")(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0));
  if (fd < 0) {
    return nullptr;
  }
  void* const at = mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  return at == MAP_FAILED ? nullptr : static_cast<Control*>(at);
}

void Record(Control& control, const Name& name, uint32_t kinds) {
  const uint32_t slot = control.passed.fetch_add(1, std::memory_order_relaxed);
  if (slot < kMaxPassed) {
    control.trace[slot].name = name.bytes();
    control.trace[slot].kinds.store(kinds, std::memory_order_release);
  }
}

[[noreturn]] void Die() {
  const auto call = Real<decltype(&syscall)>("syscall");
  call(SYS_kill, call(SYS_getpid), SIGKILL);
  std::abort();
}

/// Others of the process go on, but for what needs this thread.
void Stand(Control& control) {
  const auto call = Real<decltype(&syscall)>("syscall");
  call(SYS_futex, &control.fired, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  while (control.released.load(std::memory_order_acquire) == 0) {
    call(SYS_futex, &control.released, FUTEX_WAIT, 0, nullptr, nullptr, 0);
  }
}

bool IsFor(int32_t failure, uint32_t kinds) {
  switch (failure) {
    case 0:
    case kStand:
      return (kinds & kEffect) != 0;
    case EMFILE:
      return (kinds & kDescriptor) != 0;
    default:
      return (kinds & kSpace) != 0;
  }
}

bool IsMeant(const Control& control, const Name& name) {
  return control.name[0] == '\0' || control.name == name.bytes();
}

}  // namespace

int Pass(std::string_view verb, std::string_view object, uint32_t kinds) {
  static Control* const control = Map();
  if (control == nullptr) {
    return 0;
  }
  const Name name(verb, object);
  if (control->recording.load(std::memory_order_acquire) != 0) {
    Record(*control, name, kinds);
  }
  if (control->armed.load(std::memory_order_acquire) == 0 || !IsMeant(*control, name) ||
      !IsFor(control->failure, kinds) || control->hits.fetch_add(1) + 1 != control->nth ||
      control->fired.exchange(1) != 0) {
    return 0;
  }
  if (control->failure == 0) {
    Die();
  }
  if (control->failure == kStand) {
    Stand(*control);
    return 0;
  }
  return control->failure;
}

bool Fails(std::string_view verb, std::string_view object, uint32_t kinds) {
  const int before = errno;
  const int failure = Pass(verb, object, kinds);
  errno = failure != 0 ? failure : before;
  return failure != 0;
}

}  // namespace gantry::fault
