// SPDX-License-Identifier: Apache-2.0
//
// A virtual machine as the backend wants it, for every VMM alike. What one of them has not is
// refused when it is asked for it (hypervisor.h), never left out in silence.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::vmm {

inline constexpr uint64_t kMiB = uint64_t{1} << 20;
/// What memory is hot-added and taken back in. Source: Linux, drivers/virtio/virtio_mem.c, the
/// size of a transparent huge page.
inline constexpr uint64_t kMemoryBlock = 2 * kMiB;

enum class MemoryBacking {
  /// The VMM's own. No device that is another process's (virtiofsd, our vsock) can reach it.
  kPrivate,
  /// In memory, and shared with such processes.
  kShared,
  /// The file `Memory::file`, shared; the one kind that a snapshot need not copy.
  kFile,
};

struct Memory {
  /// At boot; whole MiB.
  uint64_t bytes = 256 * kMiB;
  /// With what can be added to it later; 0: nothing can.
  uint64_t max_bytes = 0;
  MemoryBacking backing = MemoryBacking::kShared;
  std::string file{};
};

struct Cpus {
  uint32_t boot = 1;
  /// With those that can be added later; 0: as `boot`.
  uint32_t max = 0;
};

/// virtio-blk.
struct Disk {
  /// What the guest finds it by, and its name here: 1 to 20 of [A-Za-z0-9_]. Source: virtio 1.2,
  /// 5.2.6, VIRTIO_BLK_ID_BYTES.
  std::string serial{};
  /// A file or a block device, raw, as the VMM sees it.
  std::string path{};
  bool read_only = false;
};

/// virtio-net.
struct Nic {
  /// 1 to 15 of [A-Za-z0-9_].
  std::string id{};
  /// What the guest finds it by: six pairs of hexadecimal digits with colons.
  std::string mac{};
  /// 0: the VMM says nothing of it.
  uint32_t mtu = 0;
  /// Of one queue, opened with IFF_VNET_HDR in its network namespace. QEMU, Cloud Hypervisor.
  UniqueFd tap{};
  /// Its name in the VMM's network namespace. Firecracker.
  std::string tap_name{};
};

/// virtio-fs, served by another process. The memory has to be shared.
struct FileSystem {
  /// What the guest mounts: 1 to 36 of [A-Za-z0-9_.-]. Source: virtio 1.2, 5.11.4.
  std::string tag{};
  /// A vhost-user socket that the VMM connects to.
  std::string socket{};
};

/// One of the three ways has to be named, the one that the VMM has.
struct Vsock {
  uint32_t cid = 3;
  /// A vhost-user socket that the VMM connects to: `gantry-vsock`'s. QEMU.
  std::string vhost_user{};
  /// /dev/vhost-vsock, open. QEMU.
  UniqueFd vhost{};
  /// Where the VMM itself listens, and what it puts `_PORT` behind: the hybrid kind. Cloud
  /// Hypervisor, Firecracker.
  std::string uds{};
};

/// Where a snapshot lies.
struct Snapshot {
  enum class Memory {
    /// Stays in the file that backs it (`MemoryBacking::kFile`). QEMU.
    kInItsFile,
    /// Is written beside the state.
    kSaved,
  };
  /// A directory that is there; the VMM writes to it.
  std::string directory{};
  Memory memory = Memory::kSaved;
};

struct VmConfig {
  /// Names the VM in process lists and logs: 1 to 64 of [A-Za-z0-9-].
  std::string id{};
  std::string kernel{};
  std::string initrd{};
  /// From `KernelCommandLine`.
  std::string cmdline{};
  Cpus cpus;
  Memory memory;
  /// So many devices can be there at once that are added to a running VM; at most
  /// `kMaxHotplugPorts`. (QEMU makes a place for each when it starts, Firecracker a drive.)
  uint32_t hotplug_ports = 8;
  /// A file that is there, to which the guest's console goes. Who makes it sees to its limit.
  std::string console{};
  /// Memory can be taken from the guest, and it gives back by itself what it has freed.
  bool balloon = false;
  std::optional<Vsock> vsock;
  std::vector<Disk> disks;
  std::vector<Nic> nics;
  std::vector<FileSystem> file_systems;
  /// The VM goes on where the snapshot was taken, instead of booting. All else has to be as it was
  /// for the VM that it was taken of.
  std::optional<Snapshot> from;
};

inline constexpr uint32_t kMaxHotplugPorts = 64;
inline constexpr uint32_t kMaxCpus = 255;

/// It says what a VMM needs, in words that can go onto a command line and into a path.
/// Errors: kInvalidArgument, with the field.
Status CheckVmConfig(const VmConfig& config);
/// The same of single devices, which may be added later.
Status CheckDisk(const Disk& disk);
Status CheckNic(const Nic& nic);
Status CheckFileSystem(const FileSystem& file_system);

}  // namespace gantry::vmm
