// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/machine/machine.h"

#include <utility>

#include "plugins/vmm/hypervisor/vm_end.h"
#include "plugins/vmm/machine/machine_parts.h"

namespace gantry::vmm {
namespace {

/// The Task API must not answer that to Create: containerd takes it for an older API.
/// Source: containerd 2.3, core/runtime/v2/task_manager.go.
Error ForCreate(Error error) {
  if (error.code == Code::kUnimplemented) {
    error.code = Code::kFailedPrecondition;
  }
  return error;
}

}  // namespace

Machine::Machine(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Machine::~Machine() = default;

Result<std::unique_ptr<Machine>> Machine::Start(SandboxContext& context, const MachineMeans& means,
                                                MachineRequest request, MachineEvents events,
                                                Deadline deadline) {
  auto parts = std::make_unique<Parts>(context, means, std::move(request), std::move(events));
  if (Status started = parts->Start(deadline); !started) {
    return std::unexpected(ForCreate(std::move(started).error()));
  }
  return std::unique_ptr<Machine>(new Machine(std::move(parts)));
}

Result<std::unique_ptr<Machine>> Machine::Recover(SandboxContext& context,
                                                  const MachineMeans& means, MachineRequest request,
                                                  const std::string& blob, MachineEvents events) {
  auto parts = std::make_unique<Parts>(context, means, std::move(request), std::move(events));
  GANTRY_CHECK_OK(parts->Recover(blob));
  return std::unique_ptr<Machine>(new Machine(std::move(parts)));
}

std::string Machine::Save() const { return parts_->Save(); }

std::optional<Error> Machine::ended() const { return parts_->ended(); }

Result<std::string> Machine::Ask(protocol::Kind kind, std::string body, Deadline deadline) {
  return parts_->Ask(kind, std::move(body), deadline);
}

Status Machine::PostBytes(protocol::Kind kind, std::string body,
                          std::function<void(Result<std::string>)> answered) {
  return parts_->PostBytes(kind, std::move(body), std::move(answered));
}

StreamListener& Machine::streams() { return parts_->streams(); }

std::shared_ptr<HostProcess> Machine::process() const { return parts_->process(); }

Result<std::string> Machine::AddDisk(const Disk& disk, Deadline deadline) {
  return parts_->AddDisk(disk, deadline);
}

Status Machine::RemoveDisk(const std::string& serial, Deadline deadline) {
  return parts_->RemoveDisk(serial, deadline);
}

Hypervisor& Machine::hypervisor() { return parts_->hypervisor(); }

Sizes& Machine::sizes() { return parts_->sizes(); }

Accelerator Machine::accelerator() const { return parts_->accelerator(); }

std::string Machine::agent() const { return parts_->agent(); }

std::string Machine::Console() const { return ConsoleTailOf(parts_->directory().console()); }

void Machine::Silence() { parts_->Silence(); }

Status Machine::Shutdown(std::chrono::milliseconds limit) { return parts_->Shutdown(limit); }

}  // namespace gantry::vmm
