// SPDX-License-Identifier: Apache-2.0
//
// Disks that are added to a running VM and taken away. A QEMU that may not open their paths gets
// them open, each as a set of descriptors with one in it, which is named as the disk's node is. The
// set goes with the disk: as long as it is there QEMU has the file open.
#include <span>

#include <gantry/format.h>

#include "plugins/vmm/hypervisor/qemu/qemu_driver.h"

namespace gantry::vmm::qemu {
namespace {

constexpr Driver::Command kRemoveNode = {"blockdev-del", "node-name"};
constexpr const char* kDiskErrorCounts = "what is told is why the disk could not be added";

/// Whether a set of QEMU's list has a descriptor of that name. Source: QEMU 10.0, qapi/misc.json,
/// FdsetInfo.
bool Has(const Json& set, const std::string& name) {
  const auto fds = set.is_object() ? set.find("fds") : set.end();
  if (!set.is_object() || fds == set.end() || !fds->is_array()) {
    return false;
  }
  for (const Json& one : *fds) {
    const auto opaque = one.is_object() ? one.find("opaque") : one.end();
    if (one.is_object() && opaque != one.end() && *opaque == name) {
      return true;
    }
  }
  return false;
}

}  // namespace

Status Driver::DropFdSets(const std::string& name, Deadline deadline) {
  GANTRY_TRY(const Json sets, qmp_.Execute("query-fdsets", Json(), deadline));
  for (const Json& set : sets) {
    const auto number = set.is_object() ? set.find("fdset-id") : set.end();
    if (Has(set, name) && number != set.end() && number->is_number_integer()) {
      GANTRY_CHECK_OK(Do("remove-fd", {{"fdset-id", *number}}, deadline));
    }
  }
  return {};
}

Result<std::string> Driver::GiveDisk(const Disk& disk, Deadline deadline) {
  GANTRY_TRY(const UniqueFd file, OpenDisk(disk));
  return GiveFile(BackendId(Kind::kDisk, disk.serial), file, deadline);
}

// One that an engine left that was killed meanwhile is of another file.
Result<std::string> Driver::GiveFile(const std::string& name, const UniqueFd& file,
                                     Deadline deadline) {
  GANTRY_CHECK_OK(DropFdSets(name, deadline));
  const int number = file.get();
  GANTRY_TRY(const Json set,
             qmp_.Execute("add-fd", {{"opaque", name}}, deadline, std::span(&number, 1)));
  const auto id = set.is_object() ? set.find("fdset-id") : set.end();
  if (!set.is_object() || id == set.end() || !id->is_number_integer()) {
    return Fail(Code::kDataLoss, "ask QEMU to 'add-fd': it did not say to which set");
  }
  return Format("/dev/fdset/{}", id->get<int64_t>());
}

Result<std::string> Driver::AddDisk(const Disk& disk, Deadline deadline) {
  GANTRY_CHECK_OK(CheckDisk(disk));
  GANTRY_TRY(const Place place, NewPlace(Kind::kDisk, disk.serial, deadline));
  DiskSource source = SourceOf(disk);
  if (options_.opens_disks_for_it) {
    GANTRY_TRY(source.filename, GiveDisk(disk, deadline));
  }
  Status added = Do("blockdev-add", DiskNode(disk, source), deadline);
  if (added) {
    added = Do("device_add", DiskDevice(disk, place), deadline);
  }
  if (!added) {
    IgnoreError(RemoveDisk(disk.serial, deadline), kDiskErrorCounts);
    return std::unexpected(std::move(added).error());
  }
  return disk.serial;
}

Status Driver::RemoveDisk(const std::string& serial, Deadline deadline) {
  Status removed = Remove(Kind::kDisk, serial, kRemoveNode, deadline);
  const bool is_gone = removed || removed.error().code == Code::kNotFound;
  if (is_gone && options_.opens_disks_for_it) {
    GANTRY_CHECK_OK(DropFdSets(BackendId(Kind::kDisk, serial), deadline));
  }
  return removed;
}

}  // namespace gantry::vmm::qemu
