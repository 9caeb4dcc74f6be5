// SPDX-License-Identifier: Apache-2.0
//
// vmm-accelerator KERNEL: "kvm" or "tcg", and why, in one line: what guests of this node are run
// by.
#include <cstdio>
#include <string>

#include "plugins/vmm/hypervisor/accelerator.h"
#include "plugins/vmm/hypervisor/qemu/qemu.h"

int main(int argc, char** argv) {
  using namespace gantry::vmm;
  if (argc != 2) {
    std::fputs("usage: vmm-accelerator KERNEL\n", stderr);
    return 2;
  }
  const Acceleration found = ChooseAccelerator(
      {.canary = GANTRY_KVM_CANARY, .qemu = QemuOptions().program, .kernel = argv[1]});
  std::printf("%s %s\n", found.accelerator == Accelerator::kKvm ? "kvm" : "tcg",
              found.words.c_str());
  return 0;
}
