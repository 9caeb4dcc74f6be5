// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/hypervisor/qemu/devices.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include <gantry/format.h>

namespace gantry::vmm::qemu {
namespace {

constexpr uint32_t kPortsPerSlot = 8;
/// The slots below it are the machine's own.
constexpr uint32_t kFirstSlot = 4;

std::string_view Word(Kind kind) {
  switch (kind) {
    case Kind::kDisk:
      return "disk";
    case Kind::kNic:
      return "nic";
    case Kind::kFileSystem:
      return "fs";
    case Kind::kVsock:
      break;
  }
  return "vsock";
}

/// "p3-disk-x" is in port 3.
std::optional<uint32_t> PortOf(std::string_view id) {
  if (!id.starts_with('p')) {
    return std::nullopt;
  }
  uint32_t port = 0;
  const char* const end = id.data() + id.size();
  const auto [rest, error] = std::from_chars(id.data() + 1, end, port);
  return error == std::errc() && rest != end && *rest == '-' ? std::optional(port) : std::nullopt;
}

Json InPlace(Json device, const Place& place) {
  if (place.port) {
    device["bus"] = Format("port{}", *place.port);
  }
  return device;
}

}  // namespace

std::string Place::Prefix() const { return port ? Format("p{}-", *port) : std::string("c-"); }

std::string BackendId(Kind kind, std::string_view name) {
  return name.empty() ? std::string(Word(kind)) : Format("{}-{}", Word(kind), name);
}

std::string DeviceId(const Place& place, Kind kind, std::string_view name) {
  return place.Prefix() + BackendId(kind, name);
}

std::optional<Place> PlaceIn(std::string_view id, Kind kind, std::string_view name) {
  const size_t dash = id.find('-');
  if (dash == std::string_view::npos || id.substr(dash + 1) != BackendId(kind, name)) {
    return std::nullopt;
  }
  if (id.substr(0, dash) == "c") {
    return Place{};
  }
  const auto port = PortOf(id);
  return port ? std::optional(Place{.port = port}) : std::nullopt;
}

std::optional<uint32_t> FreePort(const std::vector<std::string>& ids, uint32_t ports) {
  for (uint32_t port = 0; port < ports; ++port) {
    if (std::ranges::none_of(ids, [port](const auto& id) { return PortOf(id) == port; })) {
      return port;
    }
  }
  return std::nullopt;
}

DiskSource SourceOf(const Disk& disk) {
  struct stat info{};
  return {.filename = disk.path,
          .is_block_device = stat(disk.path.c_str(), &info) == 0 && S_ISBLK(info.st_mode)};
}

Result<UniqueFd> OpenDisk(const Disk& disk) {
  // Not a FIFO's other end.
  UniqueFd file(open(disk.path.c_str(),
                     (disk.read_only ? O_RDONLY : O_RDWR) | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file) {
    return FailErrno(errno, "open the disk '{}', '{}'", disk.serial, disk.path);
  }
  return file;
}

// Source: QEMU 10.0, block/file-posix.c, raw_open_common: each of the two drivers refuses what is
// the other's.
Json DiskNode(const Disk& disk, const DiskSource& source) {
  return {{"driver", "raw"},
          {"node-name", BackendId(Kind::kDisk, disk.serial)},
          {"read-only", disk.read_only},
          {"file",
           {{"driver", source.is_block_device ? "host_device" : "file"},
            {"filename", source.filename},
            {"read-only", disk.read_only}}}};
}

Json DiskDevice(const Disk& disk, const Place& place) {
  // Errors are the guest's to see: QEMU would stop the VM when its host's disk is full.
  return InPlace({{"driver", "virtio-blk-pci"},
                  {"id", DeviceId(place, Kind::kDisk, disk.serial)},
                  {"drive", BackendId(Kind::kDisk, disk.serial)},
                  {"serial", disk.serial},
                  {"werror", "report"},
                  {"rerror", "report"}},
                 place);
}

Json NicBackend(const Nic& nic, const std::string& fd) {
  return {{"type", "tap"}, {"id", BackendId(Kind::kNic, nic.id)}, {"fd", fd}, {"vhost", false}};
}

Json NicDevice(const Nic& nic, const Place& place) {
  // Without an option ROM: nobody boots from a network.
  Json device = {{"driver", "virtio-net-pci"},
                 {"id", DeviceId(place, Kind::kNic, nic.id)},
                 {"netdev", BackendId(Kind::kNic, nic.id)},
                 {"mac", nic.mac},
                 {"romfile", ""}};
  if (nic.mtu != 0) {
    device["host_mtu"] = nic.mtu;
  }
  return InPlace(std::move(device), place);
}

Json FileSystemDevice(const FileSystem& file_system, const Place& place) {
  constexpr int kQueueSize = 1024;
  return InPlace({{"driver", "vhost-user-fs-pci"},
                  {"id", DeviceId(place, Kind::kFileSystem, file_system.tag)},
                  {"chardev", BackendId(Kind::kFileSystem, file_system.tag)},
                  {"tag", file_system.tag},
                  {"queue-size", kQueueSize}},
                 place);
}

Json VsockDevice(const Vsock& vsock, const std::string& fd, const Place& place) {
  const std::string id = DeviceId(place, Kind::kVsock, "");
  if (fd.empty()) {
    return InPlace(
        {{"driver", "vhost-user-vsock-pci"}, {"id", id}, {"chardev", BackendId(Kind::kVsock, "")}},
        place);
  }
  return InPlace(
      {{"driver", "vhost-vsock-pci"}, {"id", id}, {"guest-cid", vsock.cid}, {"vhostfd", fd}},
      place);
}

Json SocketChardev(const std::string& id, const std::string& path) {
  return {
      {"id", id},
      {"backend",
       {{"type", "socket"},
        {"data", {{"addr", {{"type", "unix"}, {"data", {{"path", path}}}}}, {"server", false}}}}}};
}

Json Port(uint32_t number) {
  return {{"driver", "pcie-root-port"},
          {"id", Format("port{}", number)},
          {"bus", "pcie.0"},
          {"chassis", number + 1},
          {"slot", number + 1},
          {"addr", Format("{:x}.{}", kFirstSlot + number / kPortsPerSlot, number % kPortsPerSlot)},
          {"multifunction", true}};
}

Json MemoryObject(const Memory& memory, const std::string& id, uint64_t bytes) {
  if (memory.backing == MemoryBacking::kFile) {
    return {{"qom-type", "memory-backend-file"},
            {"id", id},
            {"size", bytes},
            {"mem-path", memory.file},
            {"share", true}};
  }
  return {{"qom-type", "memory-backend-memfd"},
          {"id", id},
          {"size", bytes},
          {"share", memory.backing == MemoryBacking::kShared}};
}

}  // namespace gantry::vmm::qemu
