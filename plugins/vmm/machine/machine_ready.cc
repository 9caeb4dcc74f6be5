// SPDX-License-Identifier: Apache-2.0
//
// A machine of a VM that is restored already, and waits. What is the pod's is given to it while it
// is paused: its place, its cgroups, its interfaces; its files come when it goes on. Where any of
// that fails it is ended, the log says so, and the machine is booted.
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/cgroup/move.h>
#include <gantry/toolkit/process/rights.h>

#include "plugins/vmm/machine/machine_parts.h"
#include "plugins/vmm/machine/ready_vms.h"
#include "plugins/vmm/machine/users.h"

namespace gantry::vmm {
namespace {

/// What an agent answers to a set-up that no guest can do is the pod's to hear: a VM that boots
/// would say the same.
bool IsAnAnswer(const Error& error) {
  return error.code == Code::kInvalidArgument || error.code == Code::kNotFound ||
         error.code == Code::kPermissionDenied;
}

}  // namespace

Status EndReadyVm(const VmmOptions& options, const ReadyVm& vm) {
  GANTRY_CHECK_OK(EndProcess(vm.vmm.get(), kProgramEnds));
  GANTRY_CHECK_OK(EndProcess(vm.vsock.get(), kProgramEnds));
  GANTRY_CHECK_OK(vm.directory.Remove());
  if (vm.user.uid) {
    FreeUser(options, vm.directory.sandbox(), *vm.user.uid);
  }
  return {};
}

std::optional<Status> Machine::Parts::StartReady(Deadline deadline) {
  auto taken = means_.ready_vms->Take(context_, request_, accelerator_, deadline);
  if (!taken) {
    const bool none = taken.error().code == Code::kNotFound;
    context_.Log(none ? LogLevel::kInfo : LogLevel::kWarning,
                 "no machine is ready for it, it is booted: " + taken.error().message);
    return std::nullopt;
  }
  const std::string handler = taken->handler;
  const Status taken_over = TakeOver(std::move(*taken), deadline);
  Status started = taken_over ? SetUpGuest(deadline) : taken_over;
  const bool of_use = started || (taken_over && IsAnAnswer(started.error()));
  means_.ready_vms->Report(handler, of_use);
  if (of_use) {
    // Last: whoever serves the files serves one VMM, and no other after it.
    return started ? AddFileSystems(deadline) : started;
  }
  context_.Log(
      LogLevel::kWarning,
      "a machine that was ready was of no use, another one is booted: " + started.error().message);
  if (Status removed = LetGo(); !removed) {
    return removed;
  }
  return std::nullopt;
}

Status Machine::Parts::TakeOver(ReadyVm vm, Deadline deadline) {
  Status placed = TakePlace(vm);
  user_ = vm.user;
  vmm_ = std::move(vm.vmm);
  vsock_ = std::move(vm.vsock);
  is_untagged_ = !vm.handler.empty();
  session_ = vm.agent.session;
  GANTRY_CHECK_OK(placed);
  GANTRY_CHECK_OK(MakeVm());
  GANTRY_CHECK_OK(Listen());
  GANTRY_CHECK_OK(ends_->Add(EndedPart::kVsock, *vsock_));
  GANTRY_CHECK_OK(ends_->Add(EndedPart::kVmm, *vmm_));
  GANTRY_CHECK_OK(hypervisor_->Connect(deadline, vmm_.get()));
  if (is_untagged_) {
    GANTRY_CHECK_OK(cgroup::MoveIntoCgroups(vmm_->pid(), request_.cgroups));
    GANTRY_CHECK_OK(cgroup::MoveIntoCgroups(vsock_->pid(), request_.cgroups));
  }
  for (const Disk& disk : request_.disks) {
    GANTRY_CHECK_OK(hypervisor_->AddDisk(disk, deadline));
  }
  for (const Nic& nic : request_.nics) {
    GANTRY_CHECK_OK(hypervisor_->AddNic(nic, deadline));
  }
  link_->Take(std::move(vm.agent));
  GANTRY_CHECK_OK(hypervisor_->Resume(deadline));
  return WatchParts();
}

/// On failure its files are nowhere any more.
Status Machine::Parts::TakePlace(const ReadyVm& vm) {
  const std::string& from = vm.directory.sandbox();
  if (from == directory_.sandbox()) {
    return {};
  }
  Status moved =
      vm.user.uid ? GiveUser(request_.options, from, directory_.sandbox(), *vm.user.uid) : Status();
  if (moved) {
    moved = directory_.TakeFrom(vm.directory, vm.user);
  }
  if (!moved) {
    IgnoreError(vm.directory.Remove(), "the first error counts");
  }
  return moved;
}

Status Machine::Parts::AddFileSystems(Deadline deadline) {
  for (const FileSystem& one : request_.file_systems) {
    GANTRY_CHECK_OK(MachineDirectory::Give(one.socket, user_));
    FileSystem shown = one;
    GANTRY_TRY(shown.socket, directory_.Show(one.socket, "fs-" + one.tag));
    GANTRY_CHECK_OK(hypervisor_->AddFileSystem(shown, deadline));
  }
  return {};
}

// As it was before, so that the machine can be started another way.
Status Machine::Parts::LetGo() {
  Silence();
  GANTRY_CHECK_OK(Discard());
  link_.reset();
  ends_.reset();
  streams_.reset();
  sizes_.reset();
  hypervisor_.reset();
  vmm_.reset();
  vsock_.reset();
  user_ = {};
  session_.clear();
  is_untagged_ = false;
  const MutexLock lock(mutex_);
  end_.reset();
  return {};
}

}  // namespace gantry::vmm
