// SPDX-License-Identifier: Apache-2.0
#include <signal.h>

#include <chrono>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/rights.h>

#include "plugins/vmm/hypervisor/vm_end.h"
#include "plugins/vmm/machine/disk_files.h"
#include "plugins/vmm/machine/machine_parts.h"
#include "plugins/vmm/machine/users.h"

namespace gantry::vmm {
namespace {

/// The keeper tells an end that the kernel has shown already.
constexpr std::chrono::seconds kTold{5};
/// What the guest had said last is read within that time.
constexpr std::chrono::seconds kLastWords{2};
constexpr size_t kLogBytes = size_t{16} << 10;

std::string TailOf(const std::string& log) {
  return ConsoleTail(ReadTail(log, kLogBytes).value_or(std::string()));
}

}  // namespace

Machine::Parts::Parts(SandboxContext& context, const MachineMeans& means, MachineRequest request,
                      MachineEvents events)
    : context_(context),
      means_(means),
      request_(std::move(request)),
      events_(std::move(events)),
      directory_(request_.directory) {}

// All callbacks end before the first part goes.
Machine::Parts::~Parts() { Silence(); }

void Machine::Parts::Silence() {
  {
    const MutexLock lock(mutex_);
    quiet_ = true;
  }
  if (link_) {
    link_->Stop();
  }
  if (ends_) {
    ends_->Stop();
  }
  dialled_streams_.reset();
}

Result<std::string> Machine::Parts::Ask(protocol::Kind kind, std::string body, Deadline deadline) {
  if (const auto end = ended()) {
    return Fail(Code::kUnavailable, "ask the guest agent of '{}' for {}: {}", request_.id,
                protocol::NameOf(kind), end->message);
  }
  return link_->Ask(kind, std::move(body), deadline);
}

Status Machine::Parts::PostBytes(protocol::Kind kind, std::string body,
                                 std::function<void(Result<std::string>)> answered) {
  if (const auto end = ended()) {
    return Fail(Code::kUnavailable, "ask the guest agent of '{}' for {}: {}", request_.id,
                protocol::NameOf(kind), end->message);
  }
  return link_->Post(kind, std::move(body), std::move(answered));
}

Result<std::string> Machine::Parts::AddDisk(const Disk& disk, Deadline deadline) {
  Disk wanted = disk;
  if (request_.options.vmm != Vmm::kQemu) {
    GANTRY_TRY(wanted.path, LetOpen(directory_, user_, disk.serial, disk.path));
  }
  return hypervisor_->AddDisk(wanted, deadline);
}

Status Machine::Parts::RemoveDisk(const std::string& serial, Deadline deadline) {
  Status removed = hypervisor_->RemoveDisk(serial, deadline);
  const bool is_gone = removed || removed.error().code == Code::kNotFound;
  if (is_gone && request_.options.vmm != Vmm::kQemu) {
    GANTRY_CHECK_OK(CloseFile(directory_, serial));
  }
  return removed;
}

std::string Machine::Parts::Save() const {
  SavedMachine saved = SaveRequest(request_, user_, accelerator_);
  saved.session = link_ ? link_->session() : session_;
  if (is_untagged_) {
    saved.vmm_pid = vmm_->pid().value;
    saved.vmm_start = vmm_->start_time();
    saved.vsock_pid = vsock_->pid().value;
    saved.vsock_start = vsock_->start_time();
  }
  return EncodeProto(saved);
}

std::optional<Error> Machine::Parts::ended() const {
  const MutexLock lock(mutex_);
  return end_;
}

std::string Machine::Parts::agent() const {
  const auto hello = link_ ? link_->hello() : std::nullopt;
  return hello ? Format("{} in Linux {}", hello->agent, hello->kernel) : std::string();
}

Error Machine::Parts::WithWords(Error error) const {
  if (const std::string said = TailOf(directory_.vmm_log()); !said.empty()) {
    error.message += Format("; {} said: {}", vmm_name(), said);
  }
  return error;
}

Error Machine::Parts::WhyOfVmm(const WaitStatus& status) {
  const VmEnd end = hypervisor_->Ended(status);
  Error why{Code::kUnavailable,
            0,
            Format("the VM of '{}' has ended: {}; its console ended with: {}", request_.id,
                   end.words, ConsoleTailOf(directory_.console())),
            {}};
  return end.cause == EndCause::kVmmFailed ? WithWords(std::move(why)) : why;
}

Error Machine::Parts::WhyOfVsock(const WaitStatus& status) const {
  const std::string said = TailOf(directory_.vsock_log());
  return {Code::kUnavailable,
          0,
          Format("the VM of '{}' has lost its vsock device: {}{}{}; its console ends with: {}",
                 request_.id, EndOf("gantry-vsock", status).words,
                 said.empty() ? "" : "; it said: ", said, ConsoleTailOf(directory_.console())),
          {}};
}

// The vsock device ends by itself, without a failure, when its VMM has gone.
std::optional<Error> Machine::Parts::WhyOf(EndedPart part) {
  if (part == EndedPart::kTime) {
    if (link_->connected()) {
      return std::nullopt;
    }
    return Error{
        Code::kUnavailable,
        0,
        Format("the guest agent of '{}' has gone, and has not dialled again within {} ms; "
               "the console ends with: {}",
               request_.id, means_.redial_limit.count(), ConsoleTailOf(directory_.console())),
        {}};
  }
  if (part == EndedPart::kVsock) {
    const auto vsock = vsock_->Wait(kTold);
    if (vsock && vsock->raw != 0) {
      return WhyOfVsock(*vsock);
    }
  }
  if (const auto vmm = vmm_->Wait(kTold)) {
    return WhyOfVmm(*vmm);
  }
  return Error{Code::kUnavailable,
               0,
               Format("the VM of '{}' has lost a part of it, and nobody says how", request_.id),
               {}};
}

void Machine::Parts::OnEnd(EndedPart part) {
  if (ended()) {
    return;
  }
  if (const auto why = WhyOf(part)) {
    Finish(*why);
  }
}

// What the agent has told by now is read to its end first: an exit that is in it counts.
void Machine::Parts::Finish(const Error& why) {
  const Status killed = KillAll();
  link_->AwaitLoss(std::chrono::steady_clock::now() + kLastWords);
  bool tells = false;
  {
    const MutexLock lock(mutex_);
    if (end_) {
      return;
    }
    end_ = why;
    tells = !quiet_;
  }
  link_->Close(why);
  if (!killed) {
    context_.Log(LogLevel::kError, killed.error().message);
  }
  if (tells && events_.ended) {
    events_.ended(why);
  }
}

Status Machine::Parts::KillAll() {
  Status vmm = EndProcess(vmm_.get(), kProgramEnds);
  Status vsock = EndProcess(vsock_.get(), kProgramEnds);
  return vmm ? vsock : vmm;
}

Status Machine::Parts::Discard() {
  GANTRY_CHECK_OK(KillAll());
  if (link_) {
    link_->Close({Code::kUnavailable, 0, "its VM has been shut down", {}});
  }
  GANTRY_CHECK_OK(directory_.Remove());
  if (user_.uid) {
    FreeUser(request_.options, directory_.sandbox(), *user_.uid);
  }
  return {};
}

Status Machine::Parts::Shutdown(std::chrono::milliseconds limit) {
  const std::lock_guard shutting_down(shutting_down_);
  bool runs = false;
  {
    const MutexLock lock(mutex_);
    quiet_ = true;
    runs = !end_ && vmm_ && !vmm_->Ended();
  }
  if (runs && limit.count() > 0) {
    const Deadline deadline = std::chrono::steady_clock::now() + limit;
    // It powers off; whether it can say so before is a race of its own.
    IgnoreError(Call(protocol::Shutdown(), deadline), "what does not end is killed");
    IgnoreError(vmm_->Wait(Left(deadline)), "what does not end is killed");
  }
  return Discard();
}

}  // namespace gantry::vmm
