// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <gantry/format.h>

#include "plugins/vmm/hypervisor/vm_config.h"
#include "plugins/vmm/protocol/messages.h"

namespace gantry::vmm {

/// A root, a volume or an image of containers: what it is on the host, and in the guest.
/// Containers with the same one share it, so that a FIFO, a lock or a page of memory in it is the
/// same for both: two mounts of virtiofs are two file systems to a guest. Thread: any; plain data.
struct Item {
  /// Of this sandbox; never used again.
  uint32_t number = 0;
  /// What it is: of two that are the same, the same. Empty: no other container has it.
  std::string key{};
  /// In the guest: where containers get it from.
  std::string path{};
  /// It is mounted below the shared directory.
  bool shared = false;
  /// Of the host; empty: it is no disk.
  std::string disk{};
  bool read_only = false;
  /// What the agent mounts.
  std::vector<protocol::GuestMount> mounts{};
  /// And lets go of, in this order, with all that is mounted below.
  std::vector<std::string> detach{};
  /// The disk is a file of the item's own, a layer for writing: made and removed with it.
  bool is_layer = false;
  /// Pages that the guest has to have ready for it, of its default huge size.
  uint64_t huge_pages = 0;

  /// Of the disk.
  std::string serial() const { return Format("gantry{}", number); }

  Disk ToDisk() const { return {.serial = serial(), .path = disk, .read_only = read_only}; }

  void Each(this auto& self, auto&& field) {
    field(1, self.number);
    field(2, self.key);
    field(3, self.path);
    field(4, self.shared);
    field(5, self.disk);
    field(6, self.read_only);
    field(7, self.mounts);
    field(8, self.detach);
    field(9, self.huge_pages);
    field(10, self.is_layer);
  }
};

}  // namespace gantry::vmm
