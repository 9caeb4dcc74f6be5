// SPDX-License-Identifier: Apache-2.0
//
// What guests are booted from: the image of this build, which tools/lib/vmm_image.sh makes once for
// all suites.
#pragma once

#include <string>

#include "plugins/vmm/hypervisor/accelerator.h"

namespace gantry::vmm {

/// The first process of a guest.
enum class FirstProcess {
  kAgent,
  /// tests/vmm/guests/devices.cc
  kDevices,
  /// tests/vmm/guests/programs.cc
  kPrograms,
  /// tests/vmm/guests/streams.cc
  kStreams,
};

/// Found once.
struct TestImage {
  /// Why none can be booted here; empty: it can.
  std::string why_not;
  std::string kernel;
  std::string initrd;
  /// A disk with busybox, ext4.
  std::string root_disk;
  /// KVM where it works: the environment's GANTRY_VMM_ACCEL, "kvm" or "tcg", has the last word.
  Acceleration acceleration;

  static const TestImage& Get();
};

/// For the kernel's command line.
std::string WordsFor(FirstProcess first);

}  // namespace gantry::vmm
