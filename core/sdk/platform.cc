// SPDX-License-Identifier: Apache-2.0
#include <sys/utsname.h>

#include <string>
#include <string_view>

#include <gantry/platform.h>

namespace gantry {
namespace {

/// Go's name of this machine, which containerd's platforms use.
std::string GoArchitecture(std::string_view machine) {
  if (machine == "x86_64") {
    return "amd64";
  }
  if (machine == "aarch64") {
    return "arm64";
  }
  return std::string(machine.starts_with("arm") ? "arm" : machine);
}

}  // namespace

SandboxPlatform HostPlatform() {
  utsname names = {};
  if (uname(&names) != 0) {
    return {};
  }
  return {"linux", GoArchitecture(names.machine), ""};
}

}  // namespace gantry
