// SPDX-License-Identifier: Apache-2.0
#include "tests/performance/vmm_rows.h"

#include <filesystem>
#include <system_error>

namespace gantry::bench {
namespace {

namespace fs = std::filesystem;

/// What is not there; empty: nothing.
std::string WithoutVmm(const Lab& lab) {
  const std::string& image = lab.settings().vmm_image;
  for (const std::string& file :
       {lab.programs() + "/plugins/libgantry_vmm.so", image + "/kernel", image + "/initrd",
        std::string("/usr/bin/qemu-system-x86_64"), std::string("/usr/libexec/virtiofsd")}) {
    std::error_code error;
    if (!fs::exists(file, error)) {
      return "there is no " + file + ": ./run setup vmm, ./run test vmm";
    }
  }
  return "";
}

}  // namespace

const std::vector<VmmGroup>& VmmGroups() {
  static const std::vector<VmmGroup> groups{
      {{"vmm-boot"}, VmmBootRow},
      {{"vmm-exec"}, VmmExecRow},
      {{"vmm-host-memory"}, VmmMemoryRow},
  };
  return groups;
}

Status MeasureVmm(Lab& lab, const VmmGroup& group, const Extent& extent, Report& report) {
  if (const std::string missing = WithoutVmm(lab); !missing.empty()) {
    report.AddNote(group.rows.front() + ": skipped: " + missing);
    return {};
  }
  return group.measure(lab, extent, report);
}

Side VmmSide(const Lab& lab) {
  Side side = lab.Gantry("vmm");
  side.oci.clear();
  return side;
}

}  // namespace gantry::bench
