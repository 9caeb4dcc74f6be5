// SPDX-License-Identifier: Apache-2.0
//
// The PCI bus of a machine whose guest is told neither of devices that have come nor of those that
// are to go, which the kernel's command line says: `gantry.pci=rescan` (Firecracker's).
#pragma once

#include <sys/types.h>

#include <string>

namespace gantry::vmm::guest {

/// Nothing tells this guest.
bool IsBusSilent();

/// What has come is there. Blocks: some milliseconds.
void RescanBus();

/// The disk that is mounted at the place, or whose device file it is; 0: neither.
dev_t DiskAt(const std::string& place);

/// The guest has let go of that disk, which nobody may use any more.
void RemoveFromBus(dev_t disk);

}  // namespace gantry::vmm::guest
