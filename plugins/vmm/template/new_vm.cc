// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/template/new_vm.h"

#include <chrono>
#include <optional>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "plugins/vmm/hypervisor/vm_end.h"
#include "plugins/vmm/machine/config.h"
#include "plugins/vmm/machine/programs.h"
#include "plugins/vmm/machine/users.h"

namespace gantry::vmm {
namespace {

constexpr size_t kLogBytes = size_t{16} << 10;
/// The keeper tells an end that the kernel has shown already.
constexpr std::chrono::seconds kTold{5};

}  // namespace

NewVm::~NewVm() {
  hypervisor_.reset();
  if (is_mine_) {
    IgnoreError(EndReadyVm(request_.options, vm_), "the next engine looks for what is left");
  }
}

Status NewVm::MakePlace() {
  GANTRY_CHECK_OK(MakeSandboxDirectory(request_.directory));
  vm_.directory = MachineDirectory(request_.directory);
  is_mine_ = true;
  GANTRY_TRY(const std::optional<uint32_t> uid, TakeUser(request_.options, request_.directory));
  vm_.user.uid = uid;
  GANTRY_TRY(vm_.user, UserOf(uid, accelerator_));
  GANTRY_CHECK_OK(vm_.directory.Make(vm_.user, false));
  return request_.options.own_root ? vm_.directory.NoteOwnRoot() : Status();
}

Status NewVm::Run(const std::string& snapshot, const std::string& writes_to, Deadline deadline) {
  GANTRY_TRY(VmConfig config, ConfigOf(request_, accelerator_, vm_.directory));
  ProgramTerms terms = {.user = vm_.user,
                        .cgroups = request_.cgroups,
                        .netns = {},
                        .own_root = request_.options.own_root};
  if (!writes_to.empty()) {
    terms.shown.push_back({.path = writes_to, .writable = true});
  }
  if (snapshot.empty()) {
    config.vsock.reset();
  } else {
    config.from = Snapshot{.directory = snapshot, .memory = Snapshot::Memory::kSaved};
    GANTRY_TRY(vm_.vsock, StartVsock(context_, means_, vm_.directory, terms));
    GANTRY_CHECK_OK(vm_.directory.Note("vsock", *vm_.vsock));
  }
  const HypervisorRequest wanted = {.options = request_.options,
                                    .accelerator = accelerator_,
                                    .control_socket = vm_.directory.control()};
  GANTRY_TRY(hypervisor_, means_.make_hypervisor(std::move(config), wanted));
  GANTRY_TRY(vm_.vmm, StartVmm(context_, *hypervisor_, vm_.directory, terms));
  GANTRY_CHECK_OK(vm_.directory.Note("vmm", *vm_.vmm));
  Status ready = hypervisor_->Connect(deadline, vm_.vmm.get());
  if (ready) {
    ready = hypervisor_->Configure(deadline);
  }
  return ready ? Status() : std::unexpected(WithWords(std::move(ready).error()));
}

Error NewVm::WithWords(Error error) const {
  const std::string said =
      ConsoleTail(ReadTail(vm_.directory.vmm_log(), kLogBytes).value_or(std::string()));
  if (!said.empty()) {
    error.message += Format("; {} said: {}", VmmName(request_.options.vmm), said);
  }
  return error;
}

Error NewVm::Ended() const {
  const auto status = vm_.vmm->Wait(kTold);
  const std::string_view name = VmmName(request_.options.vmm);
  const VmEnd end =
      status ? hypervisor_->Ended(*status) : VmEnd{.words = "nobody says how it has ended"};
  return WithWords(BootFailure(name, end, vm_.directory.console()));
}

ReadyVm NewVm::Release() {
  hypervisor_.reset();
  is_mine_ = false;
  return std::move(vm_);
}

}  // namespace gantry::vmm
