// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/hypervisor/hypervisor.h"

#include <fcntl.h>

#include <cerrno>

namespace gantry::vmm {

std::string_view VmmName(Vmm vmm) {
  switch (vmm) {
    case Vmm::kQemu:
      return "QEMU";
    case Vmm::kCloudHypervisor:
      return "Cloud Hypervisor";
    case Vmm::kFirecracker:
      break;
  }
  return "Firecracker";
}

std::unexpected<Error> Unsupported(Vmm vmm, std::string_view operation, std::string_view why) {
  return Fail(Code::kUnimplemented, "{} cannot {}: {}", VmmName(vmm), operation, why);
}

std::vector<RootPath> PathsIn(const VmConfig& config) {
  std::vector<RootPath> paths = {{.path = config.kernel}, {.path = config.initrd}};
  if (!config.memory.file.empty()) {
    paths.push_back({.path = config.memory.file, .writable = true});
  }
  if (config.from) {
    paths.push_back({.path = config.from->directory});
  }
  for (const FileSystem& one : config.file_systems) {
    paths.push_back({.path = one.socket, .writable = true});
  }
  return paths;
}

Result<UniqueFd> OpenVmm(Vmm vmm, const std::string& path, std::string_view package) {
  UniqueFd program(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!program) {
    return Fail(Code::kFailedPrecondition, "{} is not at '{}': {}: install {}, or name its path",
                VmmName(vmm), path, ErrnoName(errno), package);
  }
  return program;
}

}  // namespace gantry::vmm
