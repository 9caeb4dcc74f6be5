// SPDX-License-Identifier: Apache-2.0
//
// A machine without a VM: its VMM is a process that waits, its vsock device is gantry-vsock, to
// which nobody connects, and its agent is the test's and dials the machine's sockets itself.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <gantry/testing/sandbox_context.h>

#include "core/os/fs.h"
#include "plugins/vmm/machine/machine.h"
#include "tests/unit/vmm/machine/agent_double.h"
#include "tests/unit/vmm/machine/deadlines.h"
#include "tests/unit/vmm/machine/idle_vm.h"

namespace gantry::vmm {

/// A VMM of a shell's: `script` is what it does.
class ShellVm : public IdleVm {
 public:
  ShellVm(VmConfig config_in, std::string script)
      : config(std::move(config_in)), script_(std::move(script)) {}

  Result<SpawnRequest> Describe() override;

  const VmConfig config;

 private:
  const std::string script_;
};

class MachineRig : public testing::Test {
 protected:
  MachineRig();
  ~MachineRig() override;
  void SetUp() override;

  MachineRequest Request() const;
  /// Started, with an agent that says hello.
  Result<std::unique_ptr<Machine>> Start();
  Result<std::unique_ptr<Machine>> Start(MachineRequest request, Deadline deadline = Soon());
  /// As the engine after this one. `machine` is gone.
  Result<std::unique_ptr<Machine>> Recover(const std::string& blob);

  /// Asks its agent something.
  static Result<std::string> Ping(Machine& machine, Deadline deadline);

  MachineEvents Events();
  /// Why the machine has ended, once it is told.
  std::string WaitForEnd();
  void WaitForReconnects(size_t count);
  std::vector<AgentExit> WaitForExits(size_t count);
  size_t ends();

  /// Of the sandbox, in the options' directory.
  std::string sandbox() const { return base() + "/pod"; }

  std::string base() const { return folder_.path() + "/v"; }

  std::string console() const { return sandbox() + "/vm/console"; }

  /// Nothing runs, is mounted, or lies about.
  void ExpectNothingIsLeft() const;

  os::TempDir folder_ = os::TempDir::Create().value();
  FakeSandboxContext context_;
  MachineMeans means_;
  std::string script_ = "exec sleep 1000";
  /// The last that was made.
  ShellVm* vm_ = nullptr;
  std::unique_ptr<AgentDouble> agent_;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> ends_;
  std::vector<AgentExit> exits_;
  size_t reconnects_ = 0;
};

}  // namespace gantry::vmm
