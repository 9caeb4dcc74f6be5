// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/hypervisor/vm_config.h"

#include <algorithm>
#include <cctype>

namespace gantry::vmm {
namespace {

constexpr size_t kMaxId = 64;
constexpr size_t kMaxSerial = 20;
constexpr size_t kMaxNicId = 15;
constexpr size_t kMaxTag = 36;
/// Source: unix(7).
constexpr size_t kMaxSocket = 107;
/// What Linux takes at the most on x86_64 (COMMAND_LINE_SIZE).
constexpr size_t kMaxCmdline = 2047;
constexpr size_t kMacLength = 17;

bool IsPlain(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

Status CheckWord(std::string_view field, std::string_view word, size_t most,
                 std::string_view others) {
  const bool good = !word.empty() && word.size() <= most && std::ranges::all_of(word, [&](char c) {
    return IsPlain(c) || others.contains(c);
  });
  if (!good) {
    return Fail(Code::kInvalidArgument,
                "VM: {} '{}': must have 1 to {} of letters, digits and '{}'", field, word, most,
                others);
  }
  return {};
}

Status CheckPath(std::string_view field, std::string_view path) {
  if (!path.starts_with('/') || std::ranges::any_of(path, [](char c) {
        return std::iscntrl(static_cast<unsigned char>(c)) != 0;
      })) {
    return Fail(Code::kInvalidArgument,
                "VM: {} '{}': must be an absolute path without control characters", field, path);
  }
  return {};
}

Status CheckSocket(std::string_view field, std::string_view path) {
  GANTRY_CHECK_OK(CheckPath(field, path));
  if (path.size() > kMaxSocket) {
    return Fail(Code::kInvalidArgument, "VM: {} '{}': a socket's path has at most {} bytes, not {}",
                field, path, kMaxSocket, path.size());
  }
  return {};
}

Status CheckMac(std::string_view mac) {
  bool good = mac.size() == kMacLength;
  for (size_t i = 0; good && i < mac.size(); ++i) {
    good = i % 3 == 2 ? mac[i] == ':' : std::isxdigit(static_cast<unsigned char>(mac[i])) != 0;
  }
  if (!good) {
    return Fail(Code::kInvalidArgument, "VM: the MAC address '{}' is none", mac);
  }
  return {};
}

Status CheckMemory(const Memory& memory) {
  if (memory.bytes < 64 * kMiB || memory.bytes % kMiB != 0) {
    return Fail(Code::kInvalidArgument, "VM: {} bytes of memory: at least 64 MiB, whole MiB",
                memory.bytes);
  }
  if (memory.max_bytes != 0 &&
      (memory.max_bytes < memory.bytes || (memory.max_bytes - memory.bytes) % kMemoryBlock != 0)) {
    return Fail(Code::kInvalidArgument,
                "VM: up to {} bytes of memory: not less than the {} at boot, and more by whole 2 "
                "MiB",
                memory.max_bytes, memory.bytes);
  }
  if (memory.backing == MemoryBacking::kFile) {
    return CheckPath("memory file", memory.file);
  }
  return {};
}

Status CheckCpus(const Cpus& cpus) {
  const uint32_t max = std::max(cpus.max, cpus.boot);
  if (cpus.boot == 0 || max > kMaxCpus || (cpus.max != 0 && cpus.max < cpus.boot)) {
    return Fail(Code::kInvalidArgument, "VM: {} CPUs of up to {}: 1 to {}, not fewer than at boot",
                cpus.boot, cpus.max, kMaxCpus);
  }
  return {};
}

/// A device that is another process's sees the guest's memory.
bool NeedsSharedMemory(const VmConfig& config) {
  return !config.file_systems.empty() || (config.vsock && !config.vsock->vhost_user.empty());
}

Status CheckVsock(const Vsock& vsock) {
  if (vsock.cid < 3) {
    return Fail(Code::kInvalidArgument, "VM: the vsock address {} is not a guest's", vsock.cid);
  }
  for (const std::string* path : {&vsock.vhost_user, &vsock.uds}) {
    if (!path->empty()) {
      GANTRY_CHECK_OK(CheckSocket("vsock", *path));
    }
  }
  return {};
}

Status CheckDevices(const VmConfig& config) {
  for (const Disk& disk : config.disks) {
    GANTRY_CHECK_OK(CheckDisk(disk));
  }
  for (const Nic& nic : config.nics) {
    GANTRY_CHECK_OK(CheckNic(nic));
  }
  for (const FileSystem& file_system : config.file_systems) {
    GANTRY_CHECK_OK(CheckFileSystem(file_system));
  }
  if (config.vsock) {
    GANTRY_CHECK_OK(CheckVsock(*config.vsock));
  }
  if (NeedsSharedMemory(config) && config.memory.backing == MemoryBacking::kPrivate) {
    return Fail(Code::kInvalidArgument,
                "VM: private memory cannot be reached by virtiofsd and gantry-vsock: share it");
  }
  return {};
}

}  // namespace

Status CheckDisk(const Disk& disk) {
  GANTRY_CHECK_OK(CheckWord("a disk's serial", disk.serial, kMaxSerial, "_"));
  return CheckPath("a disk's path", disk.path);
}

Status CheckNic(const Nic& nic) {
  constexpr uint32_t kSmallestMtu = 68;
  constexpr uint32_t kLargestMtu = 65535;
  GANTRY_CHECK_OK(CheckWord("a NIC's id", nic.id, kMaxNicId, "_"));
  if (nic.mtu != 0 && (nic.mtu < kSmallestMtu || nic.mtu > kLargestMtu)) {
    return Fail(Code::kInvalidArgument, "VM: an MTU of {}: {} to {}", nic.mtu, kSmallestMtu,
                kLargestMtu);
  }
  return CheckMac(nic.mac);
}

Status CheckFileSystem(const FileSystem& file_system) {
  GANTRY_CHECK_OK(CheckWord("a file system's tag", file_system.tag, kMaxTag, "_.-"));
  return CheckSocket("a file system's socket", file_system.socket);
}

Status CheckVmConfig(const VmConfig& config) {
  GANTRY_CHECK_OK(CheckWord("id", config.id, kMaxId, "-"));
  GANTRY_CHECK_OK(CheckPath("kernel", config.kernel));
  GANTRY_CHECK_OK(CheckPath("initrd", config.initrd));
  GANTRY_CHECK_OK(CheckPath("console", config.console));
  if (config.cmdline.size() > kMaxCmdline || config.cmdline.contains('\n')) {
    return Fail(Code::kInvalidArgument,
                "VM: the kernel's command line has {} bytes, of which Linux takes {}, in one line",
                config.cmdline.size(), kMaxCmdline);
  }
  if (config.hotplug_ports > kMaxHotplugPorts) {
    return Fail(Code::kInvalidArgument, "VM: {} places for devices to be added: at most {}",
                config.hotplug_ports, kMaxHotplugPorts);
  }
  if (config.from) {
    GANTRY_CHECK_OK(CheckPath("snapshot", config.from->directory));
  }
  GANTRY_CHECK_OK(CheckCpus(config.cpus));
  GANTRY_CHECK_OK(CheckMemory(config.memory));
  return CheckDevices(config);
}

}  // namespace gantry::vmm
