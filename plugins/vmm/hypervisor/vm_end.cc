// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/hypervisor/vm_end.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

namespace gantry::vmm {
namespace {

constexpr size_t kTailLines = 12;
constexpr size_t kTailBytes = 1024;
constexpr size_t kReadBytes = size_t{16} << 10;
constexpr std::string_view kPanic = "Kernel panic - ";

bool IsPrintable(char c) { return c >= ' ' && c <= '~'; }

/// Without control sequences, without the kernel's time in front.
std::string Cleaned(std::string_view line) {
  std::string clean;
  for (const char c : line) {
    if (IsPrintable(c)) {
      clean.push_back(c);
    }
  }
  return clean;
}

}  // namespace

VmEnd EndOf(std::string_view vmm, const WaitStatus& status) {
  if (WIFSIGNALED(status.raw)) {
    const int signal = WTERMSIG(status.raw);
    return {.cause = EndCause::kSignal,
            .words = Format("{} was ended by signal {}{}", vmm, signal,
                            signal == SIGKILL ? ", as the kernel does for want of memory" : "")};
  }
  const int code = WEXITSTATUS(status.raw);
  if (code == 0) {
    return {.cause = EndCause::kGuestShutdown, .words = "the guest powered off, or reset itself"};
  }
  return {.cause = EndCause::kVmmFailed, .words = Format("{} ended with status {}", vmm, code)};
}

std::string ConsoleTail(std::string_view console) {
  if (console.size() > kReadBytes) {
    console.remove_prefix(console.size() - kReadBytes);
  }
  // Behind a panic comes a page of registers; what led to it is before it.
  if (const size_t panic = console.find(kPanic); panic != std::string_view::npos) {
    console = console.substr(0, console.find('\n', panic));
  }
  std::string tail;
  size_t lines = 0;
  while (!console.empty() && lines < kTailLines && tail.size() < kTailBytes) {
    const size_t cut = console.find_last_of('\n');
    std::string line = Cleaned(cut == std::string_view::npos ? console : console.substr(cut + 1));
    console = cut == std::string_view::npos ? std::string_view() : console.substr(0, cut);
    if (!line.empty()) {
      if (!tail.empty()) {
        line.append(" | ").append(tail);
      }
      tail = std::move(line);
      ++lines;
    }
  }
  if (tail.size() > kTailBytes) {
    tail.erase(0, tail.size() - kTailBytes);
  }
  return tail;
}

std::string ConsoleTailOf(const std::string& path) {
  const Result<std::string> text = ReadTail(path, kReadBytes);
  if (!text) {
    return "(unreadable: " + text.error().message + ")";
  }
  std::string tail = ConsoleTail(*text);
  return tail.empty() ? "(empty)" : tail;
}

std::string PanicIn(std::string_view console) {
  const size_t begin = console.find(kPanic);
  if (begin == std::string_view::npos) {
    return {};
  }
  const std::string_view rest = console.substr(begin + kPanic.size());
  return Cleaned(rest.substr(0, std::min(rest.find('\n'), size_t{200})));
}

Error BootFailure(std::string_view vmm, const VmEnd& end, const std::string& console_path) {
  return {.code = Code::kFailedPrecondition,
          .message = Format("boot the VM: {} before the guest's agent said hello; {}'s console "
                            "ended with: {}",
                            end.words, vmm, ConsoleTailOf(console_path)),
          .detail = {}};
}

Error BootTooSlow(std::string_view vmm, const std::string& console_path) {
  return {.code = Code::kDeadlineExceeded,
          .message = Format("boot the VM: the guest's agent has not said hello in time; {}'s "
                            "console ends with: {}",
                            vmm, ConsoleTailOf(console_path)),
          .detail = {}};
}

}  // namespace gantry::vmm
