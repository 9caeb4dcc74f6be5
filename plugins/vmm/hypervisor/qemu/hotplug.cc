// SPDX-License-Identifier: Apache-2.0
//
// Devices that are added to a running VM and taken away. A device goes into a port, a place for
// one that was made at boot. It is gone when the guest has let go of it, which QEMU tells as an
// event; the event of an engine that was killed meanwhile is lost, so what QEMU lists counts, too.
#include <span>
#include <string_view>
#include <utility>

#include <gantry/format.h>

#include "plugins/vmm/hypervisor/qemu/qemu_driver.h"

namespace gantry::vmm::qemu {
namespace {

/// Where QEMU lists the devices that have an id. Source: QEMU 10.0, docs/devel/qom.rst.
constexpr const char* kPeripherals = "/machine/peripheral";
constexpr const char* kToldAlready = "what is told is why the device could not be added";

/// It has been asked for before. Source: QEMU 10.0, system/qdev-monitor.c, qdev_unplug.
constexpr std::string_view kUnderWay = "is already in the process of unplug";

/// What takes away what stands behind a device.
constexpr Driver::Command kRemoveNetdev = {"netdev_del", "id"};
constexpr Driver::Command kRemoveChardev = {"chardev-remove", "id"};

/// A list of names. What is not one is left out.
std::vector<std::string> NamesIn(const Json& list) {
  std::vector<std::string> names;
  for (const Json& one : list) {
    if (const auto name = one.is_object() ? one.find("name") : one.end();
        one.is_object() && name != one.end() && name->is_string()) {
      names.push_back(name->get<std::string>());
    }
  }
  return names;
}

/// The end of such a device, or of the attempt.
bool IsOf(const QmpEvent& event, Kind kind, std::string_view name) {
  if (event.name != "DEVICE_DELETED" && event.name != "DEVICE_UNPLUG_GUEST_ERROR") {
    return false;
  }
  const auto device = event.data.find("device");
  return device != event.data.end() && device->is_string() &&
         PlaceIn(device->get<std::string>(), kind, name).has_value();
}

}  // namespace

Result<std::vector<std::string>> Driver::Ids(Deadline deadline) {
  GANTRY_TRY(const Json list, qmp_.Execute("qom-list", {{"path", kPeripherals}}, deadline));
  return NamesIn(list);
}

Result<Place> Driver::NewPlace(Kind kind, std::string_view name, Deadline deadline) {
  GANTRY_TRY(const std::vector<std::string> ids, Ids(deadline));
  for (const std::string& id : ids) {
    if (PlaceIn(id, kind, name)) {
      return Fail(Code::kAlreadyExists, "add a device to a VM of QEMU: there is one '{}'", id);
    }
  }
  const auto port = FreePort(ids, config_.hotplug_ports);
  if (!port) {
    return Fail(Code::kResourceExhausted,
                "add a device to a VM of QEMU: its {} ports are taken; the VM has to be made with "
                "more of them",
                config_.hotplug_ports);
  }
  return Place{.port = port};
}

Result<std::string> Driver::AddedId(Kind kind, std::string_view name, Deadline deadline) {
  GANTRY_TRY(const std::vector<std::string> ids, Ids(deadline));
  for (const std::string& id : ids) {
    const auto place = PlaceIn(id, kind, name);
    if (place && !place->port) {
      return Fail(Code::kFailedPrecondition,
                  "remove a device of a VM of QEMU: '{}' was there at boot", id);
    }
    if (place) {
      return id;
    }
  }
  return std::string();
}

Status Driver::Give(const std::string& name, const UniqueFd& fd, Deadline deadline) {
  const int number = fd.get();
  GANTRY_CHECK_OK(qmp_.Execute("getfd", {{"fdname", name}}, deadline, std::span(&number, 1)));
  return {};
}

Status Driver::Unplug(Kind kind, const std::string& name, Deadline deadline) {
  // What was told of a device of this name before.
  qmp_.Forget([&](const QmpEvent& event) { return IsOf(event, kind, name); });
  GANTRY_TRY(const std::string id, AddedId(kind, name, deadline));
  if (id.empty()) {
    return {};
  }
  const Status asked = Do("device_del", {{"id", id}}, deadline);
  if (!asked && !asked.error().message.contains(kUnderWay)) {
    return asked.error().code == Code::kNotFound ? Status() : asked;
  }
  const auto let_go = qmp_.Await(
      Format("the guest's letting go of '{}'", id),
      [&](const QmpEvent& event) { return IsOf(event, kind, name); }, deadline);
  if (!let_go) {
    return std::unexpected(let_go.error());
  }
  if (let_go->name != "DEVICE_DELETED") {
    return Fail(Code::kFailedPrecondition,
                "remove a device of a VM of QEMU: the guest does not let go of '{}'", id);
  }
  return {};
}

Status Driver::Remove(Kind kind, const std::string& name, const Command& backend,
                      Deadline deadline) {
  GANTRY_CHECK_OK(Unplug(kind, name, deadline));
  // Where the device has gone before, this is what is left of it, or there is nothing.
  Status removed = Do(backend.name, {{backend.argument, BackendId(kind, name)}}, deadline);
  if (!removed && removed.error().code == Code::kInternal) {
    removed.error().code = Code::kNotFound;
  }
  return removed;
}

Status Driver::AddNic(const Nic& nic, Deadline deadline) {
  GANTRY_CHECK_OK(CheckNic(nic));
  if (!nic.tap) {
    return Unsupported(Vmm::kQemu, "add a NIC whose tap is named",
                       "open the tap in its network namespace and give the descriptor");
  }
  GANTRY_TRY(const Place place, NewPlace(Kind::kNic, nic.id, deadline));
  const std::string name = BackendId(Kind::kNic, nic.id);
  GANTRY_CHECK_OK(Give(name, nic.tap, deadline));
  if (Status backed = Do("netdev_add", NicBackend(nic, name), deadline); !backed) {
    IgnoreError(Do("closefd", {{"fdname", name}}, deadline), kToldAlready);
    return backed;
  }
  Status added = Do("device_add", NicDevice(nic, place), deadline);
  if (!added) {
    IgnoreError(Remove(Kind::kNic, nic.id, kRemoveNetdev, deadline), kToldAlready);
  }
  return added;
}

Status Driver::RemoveNic(const std::string& nic, Deadline deadline) {
  return Remove(Kind::kNic, nic, kRemoveNetdev, deadline);
}

Status Driver::AddFileSystem(const FileSystem& file_system, Deadline deadline) {
  GANTRY_CHECK_OK(CheckFileSystem(file_system));
  GANTRY_TRY(const Place place, NewPlace(Kind::kFileSystem, file_system.tag, deadline));
  const std::string backend = BackendId(Kind::kFileSystem, file_system.tag);
  GANTRY_CHECK_OK(Do("chardev-add", SocketChardev(backend, file_system.socket), deadline));
  Status added = Do("device_add", FileSystemDevice(file_system, place), deadline);
  if (!added) {
    IgnoreError(Remove(Kind::kFileSystem, file_system.tag, kRemoveChardev, deadline), kToldAlready);
  }
  return added;
}

Status Driver::RemoveFileSystem(const std::string& tag, Deadline deadline) {
  return Remove(Kind::kFileSystem, tag, kRemoveChardev, deadline);
}

Status Driver::AddVsock(const Vsock& vsock, Deadline deadline) {
  if (!vsock.vhost && vsock.vhost_user.empty()) {
    return Unsupported(Vmm::kQemu, "listen for a guest's streams itself",
                       "give it gantry-vsock's socket, or /dev/vhost-vsock");
  }
  GANTRY_TRY(const Place place, NewPlace(Kind::kVsock, "", deadline));
  const std::string backend = BackendId(Kind::kVsock, "");
  if (vsock.vhost) {
    GANTRY_CHECK_OK(Give(backend, vsock.vhost, deadline));
    return Do("device_add", VsockDevice(vsock, backend, place), deadline);
  }
  GANTRY_CHECK_OK(Do("chardev-add", SocketChardev(backend, vsock.vhost_user), deadline));
  Status added = Do("device_add", VsockDevice(vsock, "", place), deadline);
  if (!added) {
    IgnoreError(Remove(Kind::kVsock, "", kRemoveChardev, deadline), kToldAlready);
  }
  return added;
}

}  // namespace gantry::vmm::qemu
