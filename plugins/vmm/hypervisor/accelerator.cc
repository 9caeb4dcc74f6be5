// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/hypervisor/accelerator.h"

#include <algorithm>
#include <string_view>

#include <gantry/format.h>
#include <gantry/number.h>
#include <gantry/toolkit/files/files.h>

#include "plugins/vmm/hypervisor/vm_end.h"

namespace gantry::vmm {
namespace {

constexpr size_t kMaxSaid = 200;
/// A kernel that boots says some 30 KB.
constexpr size_t kMaxBoot = size_t{256} << 10;
constexpr size_t kMaxCpuinfo = size_t{4} << 20;
constexpr std::string_view kWorks = "works: ";
constexpr std::string_view kFails = "fails: ";

Acceleration Without(std::string_view why) {
  return {.accelerator = Accelerator::kTcg, .words = Format("KVM is not used: {}", why)};
}

std::string_view LastLineOf(std::string_view text) {
  if (text.ends_with('\n')) {
    text.remove_suffix(1);
  }
  return text.substr(text.find_last_of('\n') + 1);
}

/// The first line of the file that begins with `key`, behind its colon.
std::string_view ValueOf(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.starts_with(key)) {
      const size_t colon = line.find(": ");
      return colon == std::string_view::npos ? std::string_view() : line.substr(colon + 2);
    }
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return {};
}

}  // namespace

Acceleration AccelerationOf(const std::string& said, std::chrono::milliseconds limit) {
  const std::string_view line = LastLineOf(said);
  if (line.starts_with(kWorks)) {
    return {.accelerator = Accelerator::kKvm,
            .words = Format("KVM works ({})", line.substr(kWorks.size()))};
  }
  if (line.starts_with(kFails)) {
    return Without(line.substr(kFails.size()));
  }
  return Without(Format("a guest of one instruction did not end within {} ms{}{}", limit.count(),
                        line.empty() ? "" : "; it was to ", line));
}

Acceleration BootOf(const Acceleration& before, const std::string& said,
                    std::chrono::milliseconds limit) {
  if (said.contains("Kernel panic")) {
    return {.accelerator = Accelerator::kKvm, .words = before.words + ", and a kernel boots in it"};
  }
  return Without(Format("a kernel did not boot in it, which may take {} ms; QEMU's last words: {}",
                        limit.count(), ConsoleTail(said)));
}

Acceleration ChooseAccelerator(const KvmQuestion& question, const AskFunction& ask) {
  const Result<std::string> said = ask({.program = question.canary,
                                        .arguments = {},
                                        .max_bytes = kMaxSaid,
                                        .limit = question.canary_limit});
  if (!said) {
    return Without("its canary cannot be run: " + said.error().message);
  }
  Acceleration tiny = AccelerationOf(*said, question.canary_limit);
  if (tiny.accelerator != Accelerator::kKvm || question.qemu.empty()) {
    return tiny;
  }
  const Result<std::string> booted =
      ask({.program = question.qemu,
           .arguments = {"-machine", "q35,sata=off,usb=off", "-accel", "kvm", "-cpu", "host", "-m",
                         "256M", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
                         "-serial", "stdio", "-kernel", question.kernel, "-append",
                         "console=ttyS0 panic=-1"},
           .with_errors = true,
           .max_bytes = kMaxBoot,
           .limit = question.boot_limit});
  if (!booted) {
    return Without("QEMU cannot be run: " + booted.error().message);
  }
  return BootOf(tiny, *booted, question.boot_limit);
}

uint64_t TscKhzIn(const std::string& cpuinfo) {
  const std::string_view flags = ValueOf(cpuinfo, "flags");
  if (!Format(" {} ", flags).contains(" constant_tsc ")) {
    return 0;
  }
  // "2596.140": MHz with three digits of kHz.
  std::string digits(ValueOf(cpuinfo, "cpu MHz"));
  const size_t point = digits.find('.');
  if (point == std::string::npos || digits.size() != point + 4) {
    return 0;
  }
  digits.erase(point, 1);
  const int64_t khz = ParseNumber(digits).value_or(0);
  return khz > 0 ? static_cast<uint64_t>(khz) : 0;
}

uint64_t HostTscKhz() {
  return TscKhzIn(ReadFile("/proc/cpuinfo", kMaxCpuinfo).value_or(std::string()));
}

}  // namespace gantry::vmm
