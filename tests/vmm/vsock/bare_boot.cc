// SPDX-License-Identifier: Apache-2.0
//
// vmm_bare_boot: a machine with a vsock device and nothing that gantry puts around it, from the
// start of its first process to the guest's hello. Prints the milliseconds. The row vmm-boot of
// ./run bench is held against it.
#include <chrono>
#include <cstdio>

#include "tests/vmm/vsock/streams_guest.h"

int main() {
  using gantry::vmm::StreamsGuest;
  if (const auto& image = gantry::vmm::TestImage::Get(); !image.why_not.empty()) {
    std::fprintf(stderr, "vmm_bare_boot: %s\n", image.why_not.c_str());
    return 2;
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto booted = StreamsGuest::Boot(gantry::vmm::VsockProgram::kOurs);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  if (!booted) {
    std::fprintf(stderr, "vmm_bare_boot: %s\n", booted.error().message.c_str());
    return 1;
  }
  std::printf("%.1f\n", took.count());
  return 0;
}
