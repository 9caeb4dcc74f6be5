// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/hypervisor/kernel_command_line.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <gantry/format.h>

namespace gantry::vmm {
namespace {

/// Words' meanings: Linux 6.12, Documentation/admin-guide/kernel-parameters.txt.
constexpr auto kWords = std::to_array<CmdlineWord>({
    {"console=ttyS0", true, true, "what the guest says last is in the error when it does not boot"},
    {"quiet", true, true, "each character of a serial console is an exit of the guest"},
    {"loglevel=3", true, true, "errors are said, so a kernel that fails tells why"},
    {"panic=-1", true, true, "a kernel that panics resets at once, which ends the VM"},
    {"no_timer_check", true, true, "on a busy host the timer looks broken, and the kernel panics"},
    {"8250.nr_uarts=1", true, true, "there is one serial port; others need not be looked for"},
    {"i8042.noprobe", true, true, "there is no keyboard"},
    {"cryptomgr.notests", true, true,
     "what the kernel tests of itself was tested when it was built"},
    {"rcupdate.rcu_expedited=1", true, true, "a pod waits for mounts, which wait for this"},
    {"swiotlb=noforce", true, true,
     "virtio reaches all memory; else 64 MiB are kept for other devices where memory can be added"},
    {"audit=0", true, true, "nobody reads a guest's audit log"},
    {"random.trust_cpu=on", true, true,
     "the first random numbers: QEMU's processor is no worse a source than its virtio-rng, which "
     "is "
     "mixed in"},
    {"mitigations=off", false, true,
     "production: containers of a pod, and a container and its kernel, are apart by them; TCG: a "
     "translated guest does not speculate, so they defend against nothing there"},
    {"nokaslr", false, true,
     "production: it makes attacks on the guest's kernel harder, for some milliseconds; TCG: they "
     "are "
     "a tenth of a second, and a guest there is no tenant's"},
    {"init_on_alloc=1", true, true,
     "production: memory that is read before it is written shows nothing of others; TCG: QEMU does "
     "not see what virtiofsd writes to memory, and would run what a page had before: the kernel "
     "has to have overwritten it"},
    {"lsm=capability", false, true,
     "production: the kernel's own list, so that a container's profile holds in the guest; TCG: "
     "loading them takes time, and nothing uses them"},
    {"slab_nomerge", true, false,
     "production: objects of one kind are not beside those of another, which attacks want; TCG: "
     "more "
     "memory"},
    {"vsyscall=none", true, true, "nothing that is younger than ten years calls it"},
    {"debugfs=off", true, true, "a container that gets to see it learns of the kernel's insides"},
});

bool IsLine(std::string_view text) {
  return std::ranges::none_of(
      text, [](char c) { return std::iscntrl(static_cast<unsigned char>(c)) != 0; });
}

}  // namespace

std::span<const CmdlineWord> CmdlineWords() { return kWords; }

Result<std::string> KernelCommandLine(const CmdlineRequest& request) {
  if (!IsLine(request.extra)) {
    return Fail(Code::kInvalidArgument, "the kernel's command line: '{}' is no single line",
                request.extra);
  }
  const bool tcg = request.profile == CmdlineProfile::kTcg;
  std::string line;
  for (const CmdlineWord& one : kWords) {
    if (tcg ? one.tcg : one.production) {
      line += Format("{} ", one.word);
    }
  }
  if (request.vmm == Vmm::kQemu && request.machine == QemuMachine::kMicrovm) {
    // Without it the guest leaves the slots to a firmware that is not there.
    line += "pcie_ports=native ";
    if (tcg && request.tsc_khz == 0) {
      return Fail(
          Code::kFailedPrecondition,
          "the kernel's command line: a microvm without KVM cannot measure its clock, and "
          "the host's is not known (no constant_tsc in /proc/cpuinfo): use the machine q35");
    }
  }
  if (tcg && request.tsc_khz != 0) {
    // TCG hands the host's counter through. A jiffy is 4 ms there.
    constexpr uint64_t kLoopsPerKhz = 4;
    line += Format("tsc_early_khz={} lpj={} ", request.tsc_khz, kLoopsPerKhz * request.tsc_khz);
  }
  if (request.vmm == Vmm::kFirecracker) {
    // Resetting by the keyboard's controller is the one way that it has, also for its end; and of
    // devices that come and go the guest is not told.
    line += "reboot=k gantry.off=reboot gantry.pci=rescan ";
  }
  line += request.extra;
  while (line.ends_with(' ')) {
    line.pop_back();
  }
  return line;
}

}  // namespace gantry::vmm
