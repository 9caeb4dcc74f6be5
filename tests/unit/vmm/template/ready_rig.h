// SPDX-License-Identifier: Apache-2.0
//
// Templates without a VM: a VMM is a shell that says what the agent says when it is ready, a
// snapshot is a file, and the agent is the test's, which dials wherever a VM is restored.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <gantry/testing/sandbox_context.h>

#include "core/os/fs.h"
#include "plugins/vmm/machine/machine.h"
#include "plugins/vmm/template/ready_pool.h"
#include "tests/unit/vmm/machine/agent_double.h"
#include "tests/unit/vmm/machine/deadlines.h"
#include "tests/unit/vmm/machine/idle_vm.h"

namespace gantry::vmm {

class ReadyRig;

/// Its agent begins to dial when it is booted with a vsock device, or goes on for the first time.
class TemplateVm : public IdleVm {
 public:
  TemplateVm(ReadyRig& rig, VmConfig config) : rig_(rig), config_(std::move(config)) {}

  Result<SpawnRequest> Describe() override;
  Status Boot(Deadline deadline) override;
  Status Restore(Deadline deadline) override;
  Status Resume(Deadline deadline) override;
  Status AddNic(const Nic& nic, Deadline deadline) override;
  Status TakeSnapshot(const Snapshot& snapshot, Deadline deadline) override;

 private:
  ReadyRig& rig_;
  const VmConfig config_;
};

class ReadyRig : public testing::Test {
 protected:
  friend class TemplateVm;

  ReadyRig();
  ~ReadyRig() override;
  void SetUp() override;

  /// After its first VM it makes no other, but where `times` says so.
  void MakePool(PoolTimes times = {.quiet = std::chrono::hours(1),
                                   .patience = std::chrono::hours(1)});
  void LetPoolGo();
  bool AwaitCount(const std::string& name, uint64_t value);
  uint64_t Count(const std::string& name) const;

  MachineRequest Request(const std::string& name = "pod") const;
  Result<std::unique_ptr<Machine>> Start(const std::string& name = "pod");
  Result<std::unique_ptr<Machine>> Start(MachineRequest request);

  std::vector<std::string> Templates() const;
  /// Directories of VMs that wait.
  std::vector<std::string> Waiting() const;
  void ExpectNothingIsLeft();
  void Dial(const std::string& directory);

  std::string base() const { return folder_.path() + "/v"; }

  os::TempDir folder_ = os::TempDir::Create().value();
  FakeSandboxContext maker_;
  FakeSandboxContext context_;
  MachineMeans means_;
  VmmOptions options_;
  std::string script_ = "echo gantry-agent: ready >>$CONSOLE; exec sleep 1000";
  std::atomic<int> boots_ = 0;
  std::atomic<int> snapshots_ = 0;
  std::atomic<int> restores_ = 0;
  /// What a restoring fails with, and the adding of an interface.
  std::atomic<bool> fails_to_restore_ = false;
  std::atomic<bool> fails_to_add_ = false;
  /// A snapshot has more bytes than its file system has room for.
  std::atomic<bool> snapshots_are_too_large_ = false;
  std::unique_ptr<ReadyPool> pool_;

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<AgentDouble>> agents_;
};

}  // namespace gantry::vmm
