// SPDX-License-Identifier: Apache-2.0
//
// How the VMM ends and does not: a guest that resets itself ends it, with 0; one that powers off
// stands still for ever, since it has nothing to switch it off. Source: firecracker 1.17, FAQ.md.
//
// One thing is not as it is there: the guest is told of devices that come and go.
#include "tests/vmm/doubles/firecracker_guest.h"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>

#include <gantry/format.h>

namespace gantry::test {
namespace {

using Json = nlohmann::json;

/// What a guest reads as the serial of a drive: device and inode of its file, as far as 20 bytes
/// go.
Result<std::string> SerialOf(const std::string& path) {
  constexpr size_t kBytes = 20;
  struct stat file{};
  if (stat(path.c_str(), &file) != 0) {
    return FailErrno(errno, "open the drive '{}'", path);
  }
  std::string serial = std::to_string(file.st_dev);
  serial += std::to_string(file.st_rdev);
  serial += std::to_string(file.st_ino);
  return serial.substr(0, kBytes);
}

/// By its name, as its owner may. Source: Linux, Documentation/networking/tuntap.rst.
Result<UniqueFd> OpenTap(const std::string& name) {
  UniqueFd tap(open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  ifreq request{};
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  request.ifr_flags = static_cast<short>(IFF_TAP | IFF_NO_PI | IFF_VNET_HDR);
  if (!tap || ioctl(tap.get(), TUNSETIFF, &request) != 0) {
    return FailErrno(errno, "open the tap '{}'", name);
  }
  return tap;
}

std::string IdIn(const std::string& target) { return target.substr(target.rfind('/') + 1); }

/// Where the guest behind it keeps its own part of a snapshot.
std::string StateIn(const std::string& memory) { return memory + ".guest"; }

}  // namespace

FirecrackerGuest::FirecrackerGuest(std::string root)
    : root_(std::move(root)), guest_([](const vmm::VmEnd& end) { OnEnd(end); }) {}

void FirecrackerGuest::OnEnd(const vmm::VmEnd& end) {
  std::fprintf(stderr, "firecracker: %s\n", end.words.c_str());
  switch (end.cause) {
    case vmm::EndCause::kGuestShutdown:
      return;
    case vmm::EndCause::kRequested:
    case vmm::EndCause::kGuestReset:
    case vmm::EndCause::kGuestPanic:
      _exit(0);
    case vmm::EndCause::kSignal:
    case vmm::EndCause::kVmmFailed:
      _exit(1);
  }
}

std::string FirecrackerGuest::Do(const std::string& request, const Json& body,
                                 std::vector<UniqueFd>& /*fds*/) {
  const std::lock_guard lock(mutex_);
  const Status done = Act(request, body);
  return done ? std::string() : done.error().message;
}

Status FirecrackerGuest::Act(const std::string& request, const Json& body) {
  const std::string target = request.substr(request.find(' ') + 1);
  if (request.starts_with("DELETE ")) {
    return Delete(target);
  }
  return request.starts_with("PUT ") ? Put(target, body) : Patch(target, body);
}

Status FirecrackerGuest::Put(const std::string& target, const Json& body) {
  if (target == "/actions") {
    // Of the others the guests of gantry take no notice: they have no keyboard.
    return body["action_type"] == "InstanceStart" ? Start() : Status();
  }
  if (target == "/snapshot/create") {
    return TakeSnapshot(body);
  }
  if (target == "/snapshot/load") {
    return Load(body);
  }
  if (!started_) {
    told_[target] = body;
  }
  if (target.starts_with("/drives/")) {
    return AddDrive(body);
  }
  return target.starts_with("/network-interfaces/") ? AddNic(body) : Describe(target, body);
}

Status FirecrackerGuest::Describe(const std::string& target, const Json& body) {
  if (target == "/machine-config") {
    config_.cpus = {.boot = body["vcpu_count"], .max = body["vcpu_count"]};
    config_.memory.bytes = body["mem_size_mib"].get<uint64_t>() * vmm::kMiB;
  } else if (target == "/boot-source") {
    config_.kernel = PathOf(body["kernel_image_path"]);
    config_.initrd = body.contains("initrd_path") ? PathOf(body["initrd_path"]) : "";
    config_.cmdline = body.value("boot_args", "");
  } else if (target == "/serial") {
    config_.console = PathOf(body["serial_out_path"]);
  } else if (target == "/balloon") {
    config_.balloon = true;
  } else if (target == "/hotplug/memory") {
    config_.memory.max_bytes = body["total_size_mib"].get<uint64_t>() * vmm::kMiB;
  } else if (target == "/vsock") {
    config_.vsock.emplace();
    config_.vsock->cid = body["guest_cid"];
    config_.vsock->uds = PathOf(body["uds_path"]);
  }
  return {};
}

Status FirecrackerGuest::Start() {
  vmm::VmConfig config = CopyOf(config_);
  if (config.memory.max_bytes != 0) {
    config.memory.max_bytes += config.memory.bytes;
  }
  GANTRY_CHECK_OK(guest_.Start(std::move(config)));
  started_ = true;
  return {};
}

Status FirecrackerGuest::AddDrive(const Json& body) {
  vmm::Disk disk{.serial = {},
                 .path = PathOf(body["path_on_host"]),
                 .read_only = body.value("is_read_only", false)};
  GANTRY_TRY(disk.serial, SerialOf(disk.path));
  if (started_) {
    GANTRY_TRY(const auto vm, guest_.vm());
    GANTRY_CHECK_OK(vm->AddDisk(disk, GuestTime()));
  }
  drives_[body["drive_id"]] = disk.serial;
  if (!started_) {
    config_.disks.push_back(std::move(disk));
  }
  return {};
}

Status FirecrackerGuest::AddNic(const Json& body) {
  vmm::Nic nic;
  nic.id = Format("n{}", nics_.size());
  nic.mac = body.value("guest_mac", "52:54:00:00:00:01");
  nic.mtu = body.value("mtu", 0U);
  GANTRY_TRY(nic.tap, OpenTap(body["host_dev_name"]));
  nics_[body["iface_id"]] = nic.id;
  if (!started_) {
    config_.nics.push_back(std::move(nic));
    return {};
  }
  GANTRY_TRY(const auto vm, guest_.vm());
  return vm->AddNic(nic, GuestTime());
}

Status FirecrackerGuest::Patch(const std::string& target, const Json& body) {
  GANTRY_TRY(const auto vm, guest_.vm());
  if (target == "/vm") {
    return body["state"] == "Paused" ? vm->Pause(GuestTime()) : vm->Resume(GuestTime());
  }
  if (target == "/balloon") {
    return vm->SetBalloon(body["amount_mib"].get<uint64_t>() * vmm::kMiB, GuestTime());
  }
  return vm->SetMemory(
      config_.memory.bytes + body["requested_size_mib"].get<uint64_t>() * vmm::kMiB, GuestTime());
}

Status FirecrackerGuest::Delete(const std::string& target) {
  const bool drive = target.starts_with("/drives/");
  auto& names = drive ? drives_ : nics_;
  const auto found = names.find(IdIn(target));
  if (found == names.end()) {
    return Fail(Code::kNotFound, "there is no '{}'", target);
  }
  GANTRY_TRY(const auto vm, guest_.vm());
  GANTRY_CHECK_OK(drive ? vm->RemoveDisk(found->second, GuestTime())
                        : vm->RemoveNic(found->second, GuestTime()));
  names.erase(found);
  return {};
}

// Two files, as the API says; what the guest behind it needs lies beside them.
Status FirecrackerGuest::TakeSnapshot(const Json& body) {
  const std::string memory = PathOf(body["mem_file_path"]);
  GANTRY_TRY(const auto vm, guest_.vm());
  std::filesystem::create_directory(StateIn(memory));
  GANTRY_CHECK_OK(vm->TakeSnapshot({.directory = StateIn(memory)}, GuestTime()));
  std::ofstream(PathOf(body["snapshot_path"])) << told_.dump();
  std::ofstream{memory} << "see beside it\n";
  return {};
}

Status FirecrackerGuest::Load(const Json& body) {
  const std::string memory = PathOf(body["mem_backend"]["backend_path"]);
  const std::string state = PathOf(body["snapshot_path"]);
  std::ifstream file(state);
  told_ = Json::parse(file, nullptr, false);
  if (!told_.is_object() || !std::filesystem::exists(memory)) {
    return Fail(Code::kNotFound, "load the snapshot '{}' with '{}': it is none", state, memory);
  }
  for (const auto& [target, document] : told_.items()) {
    Json one = document;
    if (target == "/vsock" && body.contains("vsock_override")) {
      one["uds_path"] = body["vsock_override"]["uds_path"];
    }
    for (const Json& other : body.value("network_overrides", Json::array())) {
      if (target == "/network-interfaces/" + other["iface_id"].get<std::string>()) {
        one["host_dev_name"] = other["host_dev_name"];
      }
    }
    GANTRY_CHECK_OK(Put(target, one));
  }
  config_.from = vmm::Snapshot{.directory = StateIn(memory)};
  return Start();
}

}  // namespace gantry::test
