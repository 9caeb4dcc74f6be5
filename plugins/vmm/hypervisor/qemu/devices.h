// SPDX-License-Identifier: Apache-2.0
//
// A VM's devices in QEMU's words. The same objects are given on its command line (which takes
// JSON) and to its monitor, so that a device that is added later is the one that could have been
// there at boot.
//
// QEMU keeps the tables: a device's id says what it is and in which port it is put,
// `p3-disk-SERIAL`, and QEMU lists ids. Those that were there at boot are called `c-disk-SERIAL`
// and cannot be removed. What stands behind it on the host, a file or a tap, is `disk-SERIAL`.
// Source: QEMU 10.0, docs/pcie.txt, qapi/{block-core,net,char,qdev}.json, and `-device NAME,help`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "plugins/vmm/hypervisor/json.h"
#include "plugins/vmm/hypervisor/vm_config.h"

namespace gantry::vmm::qemu {

enum class Kind { kDisk, kNic, kFileSystem, kVsock };

/// Where a device is: at boot on the root bus, later in a port.
struct Place {
  /// The port's number; none: it is there at boot.
  std::optional<uint32_t> port;

  /// What ids begin with.
  std::string Prefix() const;
};

/// `p3-disk-SERIAL`; `name` is empty for what there is one of.
std::string DeviceId(const Place& place, Kind kind, std::string_view name);
/// `disk-SERIAL`.
std::string BackendId(Kind kind, std::string_view name);
/// The place in an id; none: it is not of such a device.
std::optional<Place> PlaceIn(std::string_view id, Kind kind, std::string_view name);
/// The lowest port that none of `ids` is in; none: all of `ports` are taken.
std::optional<uint32_t> FreePort(const std::vector<std::string>& ids, uint32_t ports);

/// What a disk is read from: QEMU has different words for files and for block devices.
struct DiskSource {
  /// A path, or "/dev/fdset/N".
  std::string filename;
  bool is_block_device = false;
};

/// By its path. What cannot be looked at is a file, of which QEMU says what is wrong.
DiskSource SourceOf(const Disk& disk);
/// The file or device itself. Errors: open(2)'s.
Result<UniqueFd> OpenDisk(const Disk& disk);
/// For `-blockdev` and `blockdev-add`.
Json DiskNode(const Disk& disk, const DiskSource& source);
Json DiskDevice(const Disk& disk, const Place& place);
/// `fd`: what QEMU calls the tap: a number it has inherited, or a name given with getfd.
Json NicBackend(const Nic& nic, const std::string& fd);
Json NicDevice(const Nic& nic, const Place& place);
Json FileSystemDevice(const FileSystem& file_system, const Place& place);
/// `fd` as above, of /dev/vhost-vsock; empty: a vhost-user device's.
Json VsockDevice(const Vsock& vsock, const std::string& fd, const Place& place);
/// For `chardev-add`.
Json SocketChardev(const std::string& id, const std::string& path);
Json Port(uint32_t number);

/// Of `-object memory-backend-...`. `id`: "mem" is the memory at boot.
Json MemoryObject(const Memory& memory, const std::string& id, uint64_t bytes);

}  // namespace gantry::vmm::qemu
