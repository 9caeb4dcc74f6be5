// SPDX-License-Identifier: Apache-2.0
//
// Source: Linux, Documentation/ABI/testing/sysfs-bus-pci.
#include "plugins/vmm/guest/bus.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/unique_fd.h>

namespace gantry::vmm::guest {
namespace {

/// Where it cannot be told the device is missed by whoever waits for it, and named there.
void Tell(const std::string& attribute) {
  const UniqueFd file(::open(attribute.c_str(), O_WRONLY | O_CLOEXEC));
  if (file) {
    [[maybe_unused]] const auto told = ::write(file.get(), "1", 1);
  }
}

}  // namespace

bool IsBusSilent() {
  static const bool silent = [] {
    const auto words = ReadFile("/proc/cmdline", 4096);
    return words && words->contains("gantry.pci=rescan");
  }();
  return silent;
}

void RescanBus() { Tell("/sys/bus/pci/rescan"); }

dev_t DiskAt(const std::string& place) {
  struct stat info{};
  if (::lstat(place.c_str(), &info) != 0) {
    return 0;
  }
  const dev_t disk = S_ISBLK(info.st_mode) ? info.st_rdev : info.st_dev;
  // File systems without a disk have numbers of no kind.
  return ::gnu_dev_major(disk) == 0 ? 0 : disk;
}

void RemoveFromBus(dev_t disk) {
  // The disk's parent is virtio's device, whose parent is on the bus.
  Tell(Format("/sys/dev/block/{}:{}/device/../remove", ::gnu_dev_major(disk),
              ::gnu_dev_minor(disk)));
}

}  // namespace gantry::vmm::guest
