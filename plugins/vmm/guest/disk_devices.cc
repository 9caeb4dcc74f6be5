// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/guest/disk_devices.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>

#include "plugins/vmm/protocol/annotations.h"

namespace gantry::vmm::guest {

Result<std::vector<cgroup::DeviceRule>> NumberDisks(oci::Spec& spec) {
  constexpr std::string_view kPrefix = protocol::kDeviceAnnotation;
  std::vector<cgroup::DeviceRule> rules;
  for (const auto& [key, file] : spec.annotations) {
    if (!key.starts_with(kPrefix)) {
      continue;
    }
    const auto device =
        std::ranges::find(spec.linux_spec.devices, key.substr(kPrefix.size()), &oci::Device::path);
    struct stat info{};
    if (device == spec.linux_spec.devices.end() || ::stat(file.c_str(), &info) != 0 ||
        !S_ISBLK(info.st_mode)) {
      return Fail(Code::kInvalidArgument,
                  "annotation '{}': '{}': must be a block device for one of linux.devices", key,
                  file);
    }
    device->type = 'b';
    device->major = ::gnu_dev_major(info.st_rdev);
    device->minor = ::gnu_dev_minor(info.st_rdev);
    rules.push_back({.allow = true, .type = 'b', .major = device->major, .minor = device->minor});
  }
  return rules;
}

}  // namespace gantry::vmm::guest
