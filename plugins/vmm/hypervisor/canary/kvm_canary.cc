// SPDX-License-Identifier: Apache-2.0
//
// Whether a guest runs in this node's KVM: one processor, one page, one instruction.
//
//     gantry-kvm-canary
//
// It writes what it is about to do, a line for each step, and at last `works: WORDS` or `fails:
// WORDS`. Where KVM hangs, so does this, and the last line says in what; whoever runs it kills it.
//
// Freestanding: no C library, so that a plugin carries it in a few KB.
// Source: Linux, Documentation/virt/kvm/api.rst.
#include <linux/kvm.h>

#include <gantry/toolkit/freestanding/kernel.h>
#include <gantry/toolkit/freestanding/start.h>

namespace gantry::freestanding {
namespace {

constexpr long kReadWrite = 2;   // O_RDWR
constexpr long kProtection = 3;  // PROT_READ | PROT_WRITE
constexpr long kShared = 1;      // MAP_SHARED
constexpr long kAnonymous = 0x20;
constexpr long kPage = 4096;
/// Where a VM of Intel's without unrestricted guests wants three pages of its own.
[[maybe_unused]] constexpr long kTss = 0xfffbd000;
constexpr long kExpectedVersion = 12;
constexpr int kDecimal = 10;

void Say(const char* text) { Call(SYS_write, 1, Address(text), static_cast<long>(LengthOf(text))); }

[[noreturn]] void Fails(const char* words, long error) {
  char digits[] = " (errno    )\n";
  constexpr int kLastDigit = 10;
  for (int at = kLastDigit; error < 0 && at > kLastDigit - 3; --at) {
    digits[at] = static_cast<char>('0' + -error % kDecimal);
    error = error / kDecimal;
  }
  Say("fails: ");
  Say(words);
  Say(digits);
  End(1);
}

/// The kernel's answer, where it is none of its errors.
long Step(const char* words, long answer) {
  if (answer < 0) {
    Fails(words, answer);
  }
  return answer;
}

#if defined(__x86_64__)
constexpr unsigned char kHalt = 0xf4;
kvm_sregs g_special;
kvm_regs g_registers;

/// From its first page on, as a processor of 1978 would.
void Prepare(long processor) {
  Step("read a processor's registers",
       Call(SYS_ioctl, processor, KVM_GET_SREGS, Address(&g_special)));
  g_special.cs.base = 0;
  g_special.cs.selector = 0;
  Step("set a processor's registers",
       Call(SYS_ioctl, processor, KVM_SET_SREGS, Address(&g_special)));
  g_registers.rip = kPage;
  g_registers.rflags = 2;
  Step("set a processor's registers",
       Call(SYS_ioctl, processor, KVM_SET_REGS, Address(&g_registers)));
}

void RunGuest(long kvm, long machine) {
  Say("make a processor\n");
  Call(SYS_ioctl, machine, KVM_SET_TSS_ADDR, kTss);
  const long page =
      Step("get a page", Call(SYS_mmap, 0, kPage, kProtection, kShared | kAnonymous, -1, 0));
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel says addresses as numbers.
  *reinterpret_cast<unsigned char*>(page) = kHalt;
  kvm_userspace_memory_region region{};
  region.guest_phys_addr = kPage;
  region.memory_size = kPage;
  region.userspace_addr = static_cast<unsigned long>(page);
  Step("give a VM memory", Call(SYS_ioctl, machine, KVM_SET_USER_MEMORY_REGION, Address(&region)));
  const long processor = Step("make a processor", Call(SYS_ioctl, machine, KVM_CREATE_VCPU, 0));
  const long size =
      Step("ask for a processor's size", Call(SYS_ioctl, kvm, KVM_GET_VCPU_MMAP_SIZE, 0));
  const long shared =
      Step("map a processor", Call(SYS_mmap, 0, size, kProtection, kShared, processor, 0));
  Prepare(processor);
  Say("run an instruction\n");
  Step("run a processor", Call(SYS_ioctl, processor, KVM_RUN, 0));
  // NOLINTNEXTLINE(performance-no-int-to-ptr): as above.
  if (reinterpret_cast<const kvm_run*>(shared)->exit_reason != KVM_EXIT_HLT) {
    Fails("a guest's first instruction was not run", 0);
  }
}
#else
void RunGuest(long, long machine) {
  Say("make a processor\n");
  Step("make a processor", Call(SYS_ioctl, machine, KVM_CREATE_VCPU, 0));
}
#endif

}  // namespace

[[noreturn]] void Run(long, char**) {
  Say("open /dev/kvm\n");
  const long kvm = Step("open /dev/kvm", Call(SYS_openat, kAtCwd, Address("/dev/kvm"), kReadWrite));
  if (Call(SYS_ioctl, kvm, KVM_GET_API_VERSION, 0) != kExpectedVersion) {
    Fails("its API is not of version 12", 0);
  }
  Say("make a VM\n");
  RunGuest(kvm, Step("make a VM", Call(SYS_ioctl, kvm, KVM_CREATE_VM, 0)));
  Say("works: API version 12, a guest ran\n");
  End(0);
}

}  // namespace gantry::freestanding
