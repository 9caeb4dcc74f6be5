// SPDX-License-Identifier: Apache-2.0
#include "tests/vmm/harness/test_image.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "plugins/vmm/hypervisor/qemu/qemu.h"

namespace gantry::vmm {
namespace {

Acceleration Choose(const std::string& kernel) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): before any thread
  const char* const wanted = std::getenv("GANTRY_VMM_ACCEL");
  if (const std::string word = wanted == nullptr ? "" : wanted; word == "kvm" || word == "tcg") {
    return {.accelerator = word == "kvm" ? Accelerator::kKvm : Accelerator::kTcg,
            .words = "GANTRY_VMM_ACCEL=" + word};
  }
  return ChooseAccelerator(
      {.canary = GANTRY_KVM_CANARY, .qemu = QemuOptions().program, .kernel = kernel});
}

TestImage Find() {
  const std::string folder = GANTRY_VMM_IMAGE;
  TestImage image{.why_not = {},
                  .kernel = folder + "/kernel",
                  .initrd = folder + "/initrd",
                  .root_disk = folder + "/root.img",
                  .acceleration = {}};
  for (const std::string& file : {image.kernel, image.initrd, image.root_disk}) {
    if (access(file.c_str(), R_OK) != 0) {
      image.why_not = "no guest image: " + file + ", which ./run test vmm makes";
      return image;
    }
  }
  if (access(QemuOptions().program.c_str(), X_OK) != 0) {
    image.why_not = "QEMU is not installed: ./run setup vmm";
    return image;
  }
  image.acceleration = Choose(image.kernel);
  std::fprintf(stderr, "%s\n", image.acceleration.words.c_str());
  return image;
}

}  // namespace

const TestImage& TestImage::Get() {
  static const TestImage image = Find();
  return image;
}

std::string WordsFor(FirstProcess first) {
  switch (first) {
    case FirstProcess::kDevices:
      return "rdinit=/tests/devices";
    case FirstProcess::kPrograms:
      return "rdinit=/tests/programs";
    case FirstProcess::kStreams:
      return "rdinit=/tests/streams";
    case FirstProcess::kAgent:
      break;
  }
  return "";
}

}  // namespace gantry::vmm
