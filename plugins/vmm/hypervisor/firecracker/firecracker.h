// SPDX-License-Identifier: Apache-2.0
//
// A VM of Firecracker, over its REST API: one request for each device, all of them before it is
// started. It has no virtiofs, so roots and volumes are block images; taps are named, so it lives
// in the network namespace where they are; its CPUs are those it was started with.
//
// It can be run by its jailer, which gives it a root of its own, ids, and only the devices that it
// needs. All paths of the configuration are then those within that root: whoever makes the VM puts
// the files there before.
// Source: firecracker 1.17, src/firecracker/swagger/firecracker.yaml, docs/device-hotplug.md,
// docs/memory-hotplug.md, docs/jailer.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "plugins/vmm/hypervisor/hypervisor.h"

namespace gantry::vmm {

struct Jailer {
  std::string program = "/usr/bin/jailer";
  /// Of nobody else.
  uint32_t uid = 0;
  uint32_t gid = 0;
  /// Jails are made below it.
  std::string base = "/srv/jailer";
  /// Empty: that of the jailer.
  std::string network_namespace{};
};

struct FirecrackerOptions {
  /// Its file's name has to have "firecracker" in it, where a jailer runs it.
  std::string program = "/usr/bin/firecracker";
  /// Where it listens. In a jail that is below its root.
  std::string control_socket = "/api.sock";
  std::optional<Jailer> jailer{};
  /// Devices on a PCI bus, of which more can be added to a running VM. From 1.16 on; the guest is
  /// told of none (`Traits::guest_rescans`).
  bool pci = true;
};

/// Errors: kInvalidArgument: the configuration; kUnimplemented: what it has not.
Result<std::unique_ptr<Hypervisor>> MakeFirecracker(VmConfig config, FirecrackerOptions options);

/// The root that the jailer makes for a VM.
std::string JailRoot(const Jailer& jailer, const std::string& program, const std::string& id);

/// What a guest of Firecracker's reads as the serial of a disk whose file that is: it has no other.
/// Source: firecracker, src/vmm/src/devices/virtio/block/virtio/device.rs, build_device_id.
/// Errors: as stat(2).
Result<std::string> FirecrackerSerial(const std::string& path);

}  // namespace gantry::vmm
