// SPDX-License-Identifier: Apache-2.0
#include "tests/vmm/doubles/guest_behind.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <thread>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/process/spawn_builder.h>

#include "plugins/vmm/hypervisor/qemu/qemu.h"
#include "tests/vmm/doubles/execute.h"

namespace gantry::test {
namespace {

namespace fs = std::filesystem;

/// Of a user that may be anybody: his own, as long as it is there. Beside the socket of his vsock
/// device, of which he has one: in a root of his own there is no other place.
Result<std::string> MakeFolder(const std::string& uds) {
  std::string path = (uds.empty() ? fs::path("/tmp") : fs::path(uds).parent_path()) / "d-XXXXXX";
  if (mkdtemp(path.data()) == nullptr) {
    return FailErrno(errno, "make '{}'", path);
  }
  return path;
}

void Reap(pid_t child) {
  std::thread([child] { AwaitChild(child); }).detach();
}

}  // namespace

vmm::VmConfig CopyOf(const vmm::VmConfig& config) {
  vmm::VmConfig copy;
  copy.id = config.id;
  copy.kernel = config.kernel;
  copy.initrd = config.initrd;
  copy.cmdline = config.cmdline;
  copy.cpus = config.cpus;
  copy.memory = config.memory;
  copy.hotplug_ports = config.hotplug_ports;
  copy.console = config.console;
  copy.balloon = config.balloon;
  copy.disks = config.disks;
  copy.file_systems = config.file_systems;
  copy.from = config.from;
  for (const vmm::Nic& nic : config.nics) {
    vmm::Nic& one = copy.nics.emplace_back();
    one.id = nic.id;
    one.mac = nic.mac;
    one.mtu = nic.mtu;
    one.tap = nic.tap.Duplicate().value_or(UniqueFd());
  }
  if (config.vsock) {
    copy.vsock.emplace();
    copy.vsock->cid = config.vsock->cid;
    copy.vsock->uds = config.vsock->uds;
  }
  return copy;
}

GuestBehind::GuestBehind(std::function<void(const vmm::VmEnd& end)> ended)
    : ended_(std::move(ended)) {}

Result<std::string> GuestBehind::StartVsock(uint32_t cid, const std::string& uds) {
  const fs::path path(uds);
  const UniqueFd program(open(GANTRY_VSOCK, O_PATH | O_CLOEXEC));
  UniqueFd directory(open(path.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!program || !directory) {
    return FailErrno(errno, "open '{}' for '{}'", GANTRY_VSOCK, uds);
  }
  GANTRY_TRY(UniqueFd hosts, ListenUnix(uds));
  std::string front = folder_ + "/front";
  GANTRY_TRY(UniqueFd front_end, ListenUnix(front));
  SpawnBuilder child;
  child.AddFd("front-end", std::move(front_end));
  child.AddFd("hosts", std::move(hosts));
  child.AddFd("directory", std::move(directory));
  child.Add({"--name=" + path.filename().string(), Format("--guest-cid={}", cid)});
  GANTRY_TRY(const SpawnRequest request, child.Finish("gantry-vsock", program));
  GANTRY_TRY(vsock_, Execute(request));
  Reap(vsock_);
  return front;
}

Status GuestBehind::Start(vmm::VmConfig config) {
  const bool restores = config.from.has_value();
  GANTRY_TRY(folder_, MakeFolder(config.vsock ? config.vsock->uds : std::string()));
  config.id = "behind";
  if (config.vsock) {
    if (vsock_ != 0) {
      // Its own: the guest is started anew.
      fs::remove(config.vsock->uds);
    }
    GANTRY_TRY(config.vsock->vhost_user, StartVsock(config.vsock->cid, config.vsock->uds));
    config.vsock->uds.clear();
  }
  GANTRY_TRY(std::shared_ptr<vmm::Hypervisor> vm,
             vmm::MakeQemu(std::move(config), {.control_socket = folder_ + "/qmp"}));
  pid_t qemu = 0;
  {
    GANTRY_TRY(const SpawnRequest request, vm->Describe());
    GANTRY_TRY(qemu, Execute(request));
  }
  {
    const std::lock_guard lock(mutex_);
    vm_ = vm;
    qemu_ = qemu;
    runs_ = false;
  }
  Watch(qemu, vm);
  GANTRY_CHECK_OK(vm->Connect(GuestTime(), nullptr));
  GANTRY_CHECK_OK(vm->Configure(GuestTime()));
  GANTRY_CHECK_OK(restores ? vm->Restore(GuestTime()) : vm->Boot(GuestTime()));
  fs::remove_all(folder_);
  const std::lock_guard lock(mutex_);
  runs_ = qemu_ == qemu;
  return runs_ ? Status() : Fail(Code::kUnavailable, "the guest has ended at once");
}

// Each QEMU has a thread that waits for it, so that nobody's request has to.
void GuestBehind::Watch(pid_t qemu, const std::shared_ptr<vmm::Hypervisor>& vm) {
  std::thread([this, qemu, vm] {
    WaitStatus status;
    status.raw = AwaitChild(qemu);
    const vmm::VmEnd end = vm->Ended(status);
    {
      const std::lock_guard lock(mutex_);
      if (qemu_ != qemu) {
        return;
      }
      qemu_ = 0;
      vm_.reset();
      // Else whoever starts it sees it.
      if (!std::exchange(runs_, false)) {
        return;
      }
    }
    ended_(end);
  }).detach();
}

void GuestBehind::Stop() {
  const std::lock_guard lock(mutex_);
  if (qemu_ != 0) {
    kill(qemu_, SIGKILL);
  }
  qemu_ = 0;
  vm_.reset();
}

Result<std::shared_ptr<vmm::Hypervisor>> GuestBehind::vm() const {
  const std::lock_guard lock(mutex_);
  if (!vm_) {
    return Fail(Code::kFailedPrecondition, "there is no guest behind this double any more");
  }
  return vm_;
}

Status GuestBehind::AddVsock(uint32_t cid, const std::string& uds) {
  GANTRY_TRY(const auto machine, vm());
  GANTRY_TRY(folder_, MakeFolder(uds));
  vmm::Vsock vsock;
  vsock.cid = cid;
  GANTRY_TRY(vsock.vhost_user, StartVsock(cid, uds));
  GANTRY_CHECK_OK(machine->AddVsock(vsock, GuestTime()));
  fs::remove_all(folder_);
  return {};
}

}  // namespace gantry::test
