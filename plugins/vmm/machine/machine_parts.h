// SPDX-License-Identifier: Apache-2.0
//
// The inside of a machine.
//
//   start:    user -> directory -> vsock device -> VMM -> hello -> SetUp
//   of a VM that is ready: directory -> cgroups -> devices -> Resume -> SetUp -> file systems
//   recovery: the two processes by their tags -> listen anew -> the agent dials
//   end:      the first part that is gone (`Ends`), or the agent, which has not dialled again in
//             time; then the link is closed, so that no call waits, the rest is killed, and it is
//             told
//
// Watches are made last and destroyed first: no callback finds a part missing.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <gantry/toolkit/sync/mutex.h>

#include "plugins/vmm/machine/agent_link.h"
#include "plugins/vmm/machine/config.h"
#include "plugins/vmm/machine/directory.h"
#include "plugins/vmm/machine/ends.h"
#include "plugins/vmm/machine/machine.h"
#include "plugins/vmm/machine/programs.h"

namespace gantry::vmm {

struct ReadyVm;

class Machine::Parts final : public GuestCalls {
 public:
  Parts(SandboxContext& context, const MachineMeans& means, MachineRequest request,
        MachineEvents events);
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;
  ~Parts() override;

  /// On failure nothing is left.
  Status Start(Deadline deadline);
  Status Recover(const std::string& blob);
  Status Shutdown(std::chrono::milliseconds limit);
  void Silence();

  std::string Save() const;
  std::optional<Error> ended() const;

  Result<std::string> Ask(protocol::Kind kind, std::string body, Deadline deadline) override;

  Status PostBytes(protocol::Kind kind, std::string body,
                   std::function<void(Result<std::string> answer)> answered) override;

  StreamListener& streams() override { return *streams_; }

  std::shared_ptr<HostProcess> process() const override { return vmm_; }

  Result<std::string> AddDisk(const Disk& disk, Deadline deadline);
  Status RemoveDisk(const std::string& serial, Deadline deadline);

  Hypervisor& hypervisor() { return *hypervisor_; }

  Sizes& sizes() { return *sizes_; }

  Accelerator accelerator() const { return accelerator_; }

  std::string agent() const;

  const MachineDirectory& directory() const { return directory_; }

 private:
  Status Boot(Deadline deadline);
  Status BootCold(Deadline deadline);
  /// Each a step of it, in this order.
  Status Prepare();
  Status MakeVm();
  /// The sockets that the guest dials.
  Status Listen();
  Status RunPrograms(Deadline deadline);
  Result<Greeted> AwaitHello(Deadline deadline);
  Status WatchParts();
  Status SetUpGuest(Deadline deadline);

  /// None: there was no such VM, or it was of no use and nothing is left of it.
  std::optional<Status> StartReady(Deadline deadline);
  Status TakeOver(ReadyVm vm, Deadline deadline);
  Status TakePlace(const ReadyVm& vm);
  Status AddFileSystems(Deadline deadline);
  Status LetGo();

  std::shared_ptr<HostProcess> FindPart(const char* tag, int32_t pid, uint64_t start_time);
  Status TakeUp(const std::string& blob);
  Status RecoverEnd();

  /// Why a part of it is gone; none: it is not.
  std::optional<Error> WhyOf(EndedPart part);
  Error WhyOfVmm(const WaitStatus& status);
  Error WhyOfVsock(const WaitStatus& status) const;
  /// What has ended before the agent said hello.
  Error BootEnd();
  Error NotBooted(Error error);
  /// `error` with what the VMM wrote to its standard error, where that says something.
  Error WithWords(Error error) const;

  void OnEnd(EndedPart part);
  void Finish(const Error& why);
  Status KillAll();
  Status Discard();

  std::string_view vmm_name() const { return VmmName(request_.options.vmm); }

  SandboxContext& context_;
  const MachineMeans& means_;
  MachineRequest request_;
  const MachineEvents events_;
  const MachineDirectory directory_;
  /// Of the agent; empty before the first hello.
  std::string session_;
  MachineUser user_;
  Accelerator accelerator_ = Accelerator::kTcg;
  std::unique_ptr<Hypervisor> hypervisor_;
  std::unique_ptr<Sizes> sizes_;
  std::shared_ptr<HostProcess> vmm_;
  /// Null: the VMM has a vsock of its own.
  std::shared_ptr<HostProcess> vsock_;
  /// They were nobody's when they were started: only their numbers say which they are.
  bool is_untagged_ = false;

  /// One shutdown at a time.
  std::mutex shutting_down_;
  /// Guards what follows.
  mutable Mutex mutex_;
  std::optional<Error> end_ GANTRY_GUARDED_BY(mutex_);
  /// Nobody is told of an end: it has not started yet, or is being shut down.
  bool quiet_ GANTRY_GUARDED_BY(mutex_) = true;

  std::unique_ptr<StreamListener> streams_;
  std::unique_ptr<AgentLink> link_;
  std::unique_ptr<Ends> ends_;
  std::unique_ptr<Watch> dialled_streams_;
};

}  // namespace gantry::vmm
