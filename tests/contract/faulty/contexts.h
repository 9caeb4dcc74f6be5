// SPDX-License-Identifier: Apache-2.0
//
// The core's contexts, passed on to the good backend but for what the fault forgets.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gantry/container.h>
#include <gantry/process.h>

#include "tests/contract/faulty/fault.h"

namespace gantry::faulty {

class FaultyProcessContext final : public ProcessContext {
 public:
  FaultyProcessContext(Fault fault, ProcessContext& core) : fault_(fault), core_(core) {}

  const ContainerId& container() const override { return core_.container(); }

  const ExecId& exec() const override { return core_.exec(); }

  Result<Stdio> TakeStdio() override;

  Status Bind(std::shared_ptr<HostProcess> process) override {
    bound_ = process->pid();
    return core_.Bind(std::move(process));
  }

  /// What was bound last.
  HostPid bound() const { return bound_; }

  void SetPid(HostPid pid) override { core_.SetPid(pid); }

  void Exited(ExitStatus status) override { core_.Exited(status); }

  Result<UniqueFd> OpenConsole(ConsoleKind kind) override { return core_.OpenConsole(kind); }

  Status AttachConsole(UniqueFd master, ConsoleKind kind) override {
    return core_.AttachConsole(std::move(master), kind);
  }

  Status AttachStream(Stream stream, UniqueFd fd, StreamFraming framing) override {
    return core_.AttachStream(stream, std::move(fd), framing);
  }

  Status Save(std::string blob) override {
    return fault_ == Fault::kSavesNothing ? Status() : core_.Save(std::move(blob));
  }

 private:
  const Fault fault_;
  ProcessContext& core_;
  HostPid bound_;
};

class FaultyContainerContext final : public ContainerContext {
 public:
  FaultyContainerContext(Fault fault, ContainerContext& core)
      : fault_(fault), core_(core), init_(fault, core.init()) {}

  ProcessContext& init() override { return init_; }

  HostPid bound() const { return init_.bound(); }

  Status UseCgroupsOf(const HostProcess& process) override {
    return fault_ == Fault::kHasNoCgroups ? Status() : core_.UseCgroupsOf(process);
  }

  Result<std::vector<std::string>> MakeCgroups(CgroupDevices devices) override {
    return core_.MakeCgroups(devices);
  }

  Result<InsideHooks> BeginHooks() override { return core_.BeginHooks(); }

  Status RunHooks(HookPoint point, HostPid pid) override { return core_.RunHooks(point, pid); }

  void UseStateDirs(std::vector<std::string> dirs) override { core_.UseStateDirs(std::move(dirs)); }

  void UseCleanup(HostCommand command) override { core_.UseCleanup(std::move(command)); }

  void OutOfMemory() override { core_.OutOfMemory(); }

  Status Save(std::string blob) override {
    return fault_ == Fault::kSavesNothing ? Status() : core_.Save(std::move(blob));
  }

 private:
  const Fault fault_;
  ContainerContext& core_;
  FaultyProcessContext init_;
};

}  // namespace gantry::faulty
