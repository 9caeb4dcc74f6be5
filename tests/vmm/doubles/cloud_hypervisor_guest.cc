// SPDX-License-Identifier: Apache-2.0
//
// How the VMM ends and does not: a guest that powers off ends it, with 0; one that resets itself,
// as a kernel that panics does, is booted anew in the same process. Source: cloud-hypervisor after
// v53, vmm/src/lib.rs (control_loop, vm_reboot).
#include "tests/vmm/doubles/cloud_hypervisor_guest.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <utility>

#include <gantry/format.h>

namespace gantry::test {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kFileScheme = "file://";

/// Errors: kInvalidArgument.
Result<std::string> PathIn(const Json& url) {
  const auto text = url.get<std::string>();
  if (!text.starts_with(kFileScheme)) {
    return Fail(Code::kInvalidArgument, "'{}' is no URL of a file", text);
  }
  return text.substr(kFileScheme.size());
}

vmm::Disk DiskOf(const Json& body) {
  return {.serial = body.value("serial", ""),
          .path = body.value("path", ""),
          .read_only = body.value("readonly", false)};
}

vmm::FileSystem FileSystemOf(const Json& body) {
  return {.tag = body["tag"], .socket = body["socket"]};
}

vmm::Nic NicOf(const Json& body, std::vector<UniqueFd>& fds) {
  vmm::Nic nic;
  nic.id = "nic";
  nic.mac = body.value("mac", "");
  nic.mtu = body.value("mtu", 0U);
  if (!fds.empty()) {
    nic.tap = std::move(fds.front());
  }
  return nic;
}

vmm::Vsock VsockOf(const Json& body) {
  vmm::Vsock vsock;
  vsock.cid = body["cid"];
  vsock.uds = body["socket"];
  return vsock;
}

/// Without its devices. QEMU's for vhost-user want shared memory in any case.
vmm::VmConfig MachineOf(const Json& body) {
  vmm::VmConfig config;
  const Json& payload = body["payload"];
  config.kernel = payload.value("kernel", "");
  config.initrd = payload.value("initramfs", "");
  config.cmdline = payload.value("cmdline", "");
  const Json cpus = body.value("cpus", Json{{"boot_vcpus", 1}, {"max_vcpus", 1}});
  config.cpus = {.boot = cpus["boot_vcpus"], .max = cpus["max_vcpus"]};
  const Json memory = body.value("memory", Json{{"size", 512 * vmm::kMiB}});
  config.memory.bytes = memory["size"];
  if (memory.contains("hotplug_size")) {
    config.memory.max_bytes = config.memory.bytes + memory["hotplug_size"].get<uint64_t>();
  }
  config.balloon = body.contains("balloon");
  config.console = body.value(Json::json_pointer("/serial/file"), "/dev/null");
  return config;
}

}  // namespace

CloudHypervisorGuest::CloudHypervisorGuest()
    : guest_([this](const vmm::VmEnd& end) { OnEnd(end); }) {}

void CloudHypervisorGuest::OnEnd(const vmm::VmEnd& end) {
  std::fprintf(stderr, "cloud-hypervisor: %s\n", end.words.c_str());
  switch (end.cause) {
    case vmm::EndCause::kGuestShutdown:
    case vmm::EndCause::kRequested:
      _exit(0);
    case vmm::EndCause::kGuestReset:
    case vmm::EndCause::kGuestPanic: {
      const std::lock_guard lock(mutex_);
      if (const Status again = guest_.Start(CopyOf(config_)); !again) {
        std::fprintf(stderr, "cloud-hypervisor: reboot: %s\n", again.error().message.c_str());
        _exit(1);
      }
      return;
    }
    case vmm::EndCause::kSignal:
    case vmm::EndCause::kVmmFailed:
      _exit(1);
  }
}

std::string CloudHypervisorGuest::Do(const std::string& action, const Json& body,
                                     std::vector<UniqueFd>& fds) {
  const std::lock_guard lock(mutex_);
  const Status done = Act(action, body, fds);
  return done ? std::string() : done.error().message;
}

Status CloudHypervisorGuest::Act(const std::string& action, const Json& body,
                                 std::vector<UniqueFd>& fds) {
  if (action == "vm.create") {
    Create(body);
    return {};
  }
  if (action.starts_with("vm.add-")) {
    return Add(action, body, fds);
  }
  if (action == "vm.remove-device") {
    return Remove(body["id"]);
  }
  if (action == "vm.resize") {
    return Resize(body);
  }
  if (action == "vm.snapshot") {
    return TakeSnapshot(body);
  }
  return action == "vm.restore" ? Restore(body) : Run(action);
}

Status CloudHypervisorGuest::Run(const std::string& action) {
  if (action == "vm.boot") {
    GANTRY_CHECK_OK(guest_.Start(CopyOf(config_)));
    booted_ = true;
    return {};
  }
  if (action == "vm.shutdown" || action == "vmm.shutdown") {
    guest_.Stop();
    return {};
  }
  GANTRY_TRY(const auto vm, guest_.vm());
  if (action == "vm.power-button") {
    return vm->Stop(GuestTime());
  }
  return action == "vm.pause" ? vm->Pause(GuestTime()) : vm->Resume(GuestTime());
}

void CloudHypervisorGuest::Create(const Json& body) {
  document_ = body;
  config_ = MachineOf(body);
  for (const Json& one : body.value("disks", Json::array())) {
    config_.disks.push_back(DiskOf(one));
    devices_[one["id"]] = {.kind = Kind::kDisk, .name = config_.disks.back().serial};
  }
  for (const Json& one : body.value("fs", Json::array())) {
    config_.file_systems.push_back(FileSystemOf(one));
    devices_[one["id"]] = {.kind = Kind::kFileSystem, .name = config_.file_systems.back().tag};
  }
  if (body.contains("vsock")) {
    config_.vsock = VsockOf(body["vsock"]);
  }
}

// Kept in the configuration, too: a guest that resets itself has them again.
Status CloudHypervisorGuest::Add(const std::string& action, const Json& body,
                                 std::vector<UniqueFd>& fds) {
  const std::string id = body.value("id", "");
  if (action == "vm.add-disk") {
    const vmm::Disk disk = DiskOf(body);
    if (booted_) {
      GANTRY_TRY(const auto vm, guest_.vm());
      GANTRY_CHECK_OK(vm->AddDisk(disk, GuestTime()));
    } else {
      config_.disks.push_back(disk);
    }
    devices_[id] = {.kind = Kind::kDisk, .name = disk.serial};
    return {};
  }
  if (action == "vm.add-net") {
    vmm::Nic nic = NicOf(body, fds);
    nic.id = Format("n{}", devices_.size());
    devices_[id] = {.kind = Kind::kNic, .name = nic.id};
    if (booted_) {
      GANTRY_TRY(const auto vm, guest_.vm());
      return vm->AddNic(nic, GuestTime());
    }
    config_.nics.push_back(std::move(nic));
    return {};
  }
  if (action == "vm.add-fs") {
    const vmm::FileSystem one = FileSystemOf(body);
    devices_[id] = {.kind = Kind::kFileSystem, .name = one.tag};
    if (booted_) {
      GANTRY_TRY(const auto vm, guest_.vm());
      return vm->AddFileSystem(one, GuestTime());
    }
    config_.file_systems.push_back(one);
    return {};
  }
  const vmm::Vsock vsock = VsockOf(body);
  if (booted_) {
    return guest_.AddVsock(vsock.cid, vsock.uds);
  }
  config_.vsock.emplace();
  config_.vsock->cid = vsock.cid;
  config_.vsock->uds = vsock.uds;
  return {};
}

Status CloudHypervisorGuest::Remove(const std::string& id) {
  const auto device = devices_.find(id);
  if (device == devices_.end()) {
    return Fail(Code::kNotFound, "there is no '{}'", id);
  }
  GANTRY_TRY(const auto vm, guest_.vm());
  const auto [kind, name] = device->second;
  Status removed;
  switch (kind) {
    case Kind::kDisk:
      removed = vm->RemoveDisk(name, GuestTime());
      break;
    case Kind::kNic:
      removed = vm->RemoveNic(name, GuestTime());
      break;
    case Kind::kFileSystem:
      removed = vm->RemoveFileSystem(name, GuestTime());
      break;
  }
  GANTRY_CHECK_OK(removed);
  devices_.erase(device);
  return {};
}

Status CloudHypervisorGuest::Resize(const Json& body) {
  GANTRY_TRY(const auto vm, guest_.vm());
  if (body.contains("desired_vcpus")) {
    GANTRY_CHECK_OK(vm->SetCpus(body["desired_vcpus"], GuestTime()));
  }
  if (body.contains("desired_ram")) {
    GANTRY_CHECK_OK(vm->SetMemory(body["desired_ram"], GuestTime()));
  }
  if (body.contains("desired_balloon")) {
    GANTRY_CHECK_OK(vm->SetBalloon(body["desired_balloon"], GuestTime()));
  }
  return {};
}

// A directory with what the VM was made of, and the state of the guest behind it.
Status CloudHypervisorGuest::TakeSnapshot(const Json& body) {
  GANTRY_TRY(const std::string folder, PathIn(body["destination_url"]));
  GANTRY_TRY(const auto vm, guest_.vm());
  std::ofstream(folder + "/config.json") << document_.dump();
  return vm->TakeSnapshot({.directory = folder}, GuestTime());
}

// What a snapshot brings is its own; gantry's have neither vsock nor file systems nor NICs.
Status CloudHypervisorGuest::Restore(const Json& body) {
  GANTRY_TRY(const std::string folder, PathIn(body["source_url"]));
  std::ifstream file(folder + "/config.json");
  const Json document = Json::parse(file, nullptr, false);
  if (!document.is_object()) {
    return Fail(Code::kNotFound, "there is no snapshot in '{}'", folder);
  }
  Create(document);
  vmm::VmConfig config = CopyOf(config_);
  config.from = vmm::Snapshot{.directory = folder};
  GANTRY_CHECK_OK(guest_.Start(std::move(config)));
  booted_ = true;
  return {};
}

}  // namespace gantry::test
