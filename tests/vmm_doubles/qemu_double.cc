// SPDX-License-Identifier: Apache-2.0
#include "tests/vmm_doubles/qemu_double.h"

#include <utility>

#include "tests/vmm_doubles/schema.h"

namespace gantry::test {
namespace {

using Json = nlohmann::json;
using enum FieldType;

/// What commands take. Devices have members of their own: a real QEMU knows those.
const Schemas& CommandSchemas() {
  static const Schemas all = {
      {"cont", {}},
      {"stop", {}},
      {"quit", {}},
      {"system_powerdown", {}},
      {"query-status", {}},
      {"query-migrate", {}},
      {"query-balloon", {}},
      {"query-cpus-fast", {}},
      {"query-hotpluggable-cpus", {}},
      {"qom-list", {{"path", kString, true}}},
      {"qom-get", {{"path", kString, true}, {"property", kString, true}}},
      {"qom-set",
       {{"path", kString, true}, {"property", kString, true}, {"value", kInteger, true}}},
      {"balloon", {{"value", kInteger, true}}},
      {"device_del", {{"id", kString, true}}},
      {"getfd", {{"fdname", kString, true}}},
      {"closefd", {{"fdname", kString, true}}},
      {"query-fdsets", {}},
      {"add-fd", {{"opaque", kString}}},
      {"remove-fd", {{"fdset-id", kInteger, true}}},
      {"blockdev-add",
       {{"driver", kEnum, true, "raw"},
        {"node-name", kString, true},
        {"read-only", kBoolean},
        {"file", kObject, true, "file"}}},
      {"file",
       {{"driver", kEnum, true, "file|host_device"},
        {"filename", kString, true},
        {"read-only", kBoolean}}},
      {"blockdev-del", {{"node-name", kString, true}}},
      {"netdev_add",
       {{"type", kEnum, true, "tap"},
        {"id", kString, true},
        {"fd", kString, true},
        {"vhost", kBoolean}}},
      {"netdev_del", {{"id", kString, true}}},
      {"chardev-add", {{"id", kString, true}, {"backend", kObject, true, "backend"}}},
      {"backend", {{"type", kEnum, true, "socket"}, {"data", kObject, true, "socket"}}},
      {"socket", {{"addr", kObject, true, "address"}, {"server", kBoolean, true}}},
      {"address", {{"type", kEnum, true, "unix"}, {"data", kObject, true, "path"}}},
      {"path", {{"path", kString, true}}},
      {"chardev-remove", {{"id", kString, true}}},
      {"migrate-set-capabilities", {{"capabilities", kList, true, "capability"}}},
      {"capability",
       {{"capability", kEnum, true, "events|x-ignore-shared|mapped-ram"},
        {"state", kBoolean, true}}},
      {"migrate", {{"uri", kString, true}}},
      {"migrate-incoming", {{"uri", kString, true}}}};
  return all;
}

Json DescribeCpu(int index, const std::string& path) {
  Json slot = {{"type", "max-x86_64-cpu"},
               {"vcpus-count", 1},
               {"props", {{"socket-id", index}, {"core-id", 0}, {"thread-id", 0}}}};
  if (!path.empty()) {
    slot["qom-path"] = path;
  }
  return slot;
}

}  // namespace

QemuDouble::QemuDouble(UniqueFd listener, int cpus)
    : cpus_(cpus),
      server_(std::move(listener), [this](const Json& request, std::vector<UniqueFd>& fds) {
        return Handle(request, fds);
      }) {}

void QemuDouble::SetGuest(GuestMood mood) {
  const std::lock_guard lock(mutex_);
  guest_ = mood;
}

void QemuDouble::RefuseDevices() {
  const std::lock_guard lock(mutex_);
  refuses_devices_ = true;
}

void QemuDouble::SetMigration(const std::string& status) {
  const std::lock_guard lock(mutex_);
  migration_ = status;
}

std::set<std::string> QemuDouble::Devices() const {
  const std::lock_guard lock(mutex_);
  std::set<std::string> ids;
  for (const auto& [id, device] : devices_) {
    ids.insert(id);
  }
  return ids;
}

std::set<std::string> QemuDouble::Backends() const {
  const std::lock_guard lock(mutex_);
  return backends_;
}

std::set<std::string> QemuDouble::FdSets() const {
  const std::lock_guard lock(mutex_);
  std::set<std::string> names;
  for (const auto& [number, name] : fd_sets_) {
    names.insert(name);
  }
  return names;
}

void QemuDouble::Later(const std::string& event, const Json& data) { server_.Emit(event, data); }

Json QemuDouble::Handle(const Json& request, std::vector<UniqueFd>& fds) {
  const std::lock_guard lock(mutex_);
  const auto command = request.value("execute", "");
  const Json arguments = request.value("arguments", Json::object());
  if (command == "device_add") {
    return AddDevice(arguments);
  }
  if (!CommandSchemas().contains(command)) {
    return QmpError("CommandNotFound", "The command " + command + " has not been found");
  }
  if (const std::string wrong = WhatIsWrong(CommandSchemas(), command, arguments); !wrong.empty()) {
    return QmpError("GenericError", wrong);
  }
  if (command.starts_with("query-") || command == "qom-list" || command == "qom-get") {
    return Query(command);
  }
  return Change(command, arguments, fds);
}

Json QemuDouble::Query(const std::string& command) {
  if (command == "query-status") {
    return Returns({{"status", state_}, {"running", state_ == "running"}});
  }
  if (command == "query-balloon") {
    return Returns({{"actual", (uint64_t{256} << 20) - balloon_}});
  }
  if (command == "query-migrate") {
    return Returns({{"status", migration_}, {"error-desc", "no space left"}});
  }
  if (command == "qom-get") {
    return Returns(more_memory_);
  }
  Json list = Json::array();
  if (command == "query-fdsets") {
    for (const auto& [number, name] : fd_sets_) {
      list.push_back(
          {{"fdset-id", number}, {"fds", Json::array({{{"fd", 20}, {"opaque", name}}})}});
    }
    return Returns(list);
  }
  if (command == "qom-list") {
    for (const auto& [id, device] : devices_) {
      list.push_back({{"name", id}, {"type", "child<" + device.value("driver", "") + ">"}});
    }
    list.push_back({{"name", "type"}, {"type", "string"}});
    return Returns(list);
  }
  for (int index = cpus_ - 1; index >= 0; --index) {
    const std::string id = "cpu-" + std::to_string(index);
    const bool there = index == 0 || devices_.contains(id);
    if (there || command != "query-cpus-fast") {
      list.push_back(DescribeCpu(index, there ? "/machine/" + id : ""));
    }
  }
  return Returns(list);
}

Json QemuDouble::Change(const std::string& command, const Json& arguments,
                        std::vector<UniqueFd>& fds) {
  if (command == "cont" || command == "stop") {
    state_ = command == "cont" ? "running" : "paused";
  } else if (command == "balloon") {
    balloon_ = (uint64_t{256} << 20) - arguments["value"].get<uint64_t>();
  } else if (command == "qom-set") {
    more_memory_ = arguments["value"];
  } else if (command == "blockdev-add" || command == "chardev-add") {
    return AddBackend(arguments[command == "chardev-add" ? "id" : "node-name"]);
  } else if (command == "netdev_add") {
    const auto fd = fds_.find(arguments["fd"].get<std::string>());
    if (fd == fds_.end()) {
      return QmpError("GenericError", "File descriptor named '...' has not been found");
    }
    fds_.erase(fd);
    return AddBackend(arguments["id"]);
  } else if (command == "blockdev-del") {
    return RemoveBackend(arguments["node-name"]);
  } else if (command == "netdev_del" || command == "chardev-remove") {
    return RemoveBackend(arguments["id"]);
  } else if (command == "device_del") {
    return RemoveDevice(arguments["id"]);
  } else if (command == "add-fd") {
    if (fds.size() != 1) {
      return QmpError("GenericError", "No file descriptor supplied via SCM_RIGHTS");
    }
    const int64_t number = fd_sets_.empty() ? 0 : fd_sets_.rbegin()->first + 1;
    fd_sets_[number] = arguments.value("opaque", "");
    return Returns({{"fdset-id", number}, {"fd", 20}});
  } else if (command == "remove-fd") {
    if (fd_sets_.erase(arguments["fdset-id"].get<int64_t>()) == 0) {
      return QmpError("GenericError", "File descriptor named 'fdset-id:...' not found");
    }
  } else if (command == "getfd") {
    if (fds.size() != 1) {
      return QmpError("GenericError", "No file descriptor supplied via SCM_RIGHTS");
    }
    fds_[arguments["fdname"]] = std::move(fds.front());
  } else if (command.starts_with("migrate") && command != "migrate-set-capabilities") {
    Later("MIGRATION", {{"status", "setup"}});
    Later("MIGRATION", {{"status", migration_}});
    state_ = command == "migrate" ? "postmigrate" : "paused";
  } else if (command == "quit") {
    Later("SHUTDOWN", {{"guest", false}, {"reason", "host-qmp-quit"}});
  }
  return Returns();
}

Json QemuDouble::AddBackend(const std::string& id) {
  return backends_.insert(id).second ? Returns()
                                     : QmpError("GenericError", "Duplicate backend " + id);
}

Json QemuDouble::RemoveBackend(const std::string& id) {
  return backends_.erase(id) == 1 ? Returns()
                                  : QmpError("GenericError", "Failed to find backend " + id);
}

Json QemuDouble::AddDevice(const Json& device) {
  const auto id = device.value("id", "");
  if (refuses_devices_ || id.empty() || devices_.contains(id)) {
    return QmpError("GenericError", "Duplicate device ID '" + id + "'");
  }
  for (const char* backend : {"drive", "netdev", "chardev"}) {
    if (device.contains(backend) && !backends_.contains(device[backend].get<std::string>())) {
      return QmpError("GenericError", "there is no such " + std::string(backend));
    }
  }
  if (device.contains("vhostfd") && fds_.erase(device["vhostfd"].get<std::string>()) == 0) {
    return QmpError("GenericError", "there is no such descriptor");
  }
  for (const auto& [other, where] : devices_) {
    if (device.contains("bus") && where.value("bus", "") == device["bus"].get<std::string>()) {
      return QmpError("GenericError", "PCI: slot 0 function 0 already occupied by " + other);
    }
  }
  devices_[id] = device;
  return Returns();
}

Json QemuDouble::RemoveDevice(const std::string& id) {
  if (!devices_.contains(id)) {
    return QmpError("DeviceNotFound", "Device '" + id + "' not found");
  }
  if (guest_ == GuestMood::kSilent && !asked_.insert(id).second) {
    return QmpError("GenericError", "Device " + id + " is already in the process of unplug");
  }
  if (guest_ == GuestMood::kRefuses) {
    Later("DEVICE_UNPLUG_GUEST_ERROR", {{"device", id}, {"path", "/machine/peripheral/" + id}});
  } else if (guest_ == GuestMood::kLetsGo) {
    devices_.erase(id);
    Later("DEVICE_DELETED", {{"path", "/machine/peripheral/" + id + "/virtio-backend"}});
    Later("DEVICE_DELETED", {{"device", id}, {"path", "/machine/peripheral/" + id}});
  }
  return Returns();
}

}  // namespace gantry::test
