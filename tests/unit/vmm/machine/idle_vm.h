// SPDX-License-Identifier: Apache-2.0
//
// A VM that does nothing, of which a test changes what it is about.
#pragma once

#include <string>
#include <vector>

#include "plugins/vmm/hypervisor/hypervisor.h"

namespace gantry::vmm {

class IdleVm : public Hypervisor {
 public:
  Vmm vmm() const override { return Vmm::kQemu; }

  Traits traits() const override { return {.cpus = true, .memory = true}; }

  Result<SpawnRequest> Describe() override { return SpawnRequest(); }

  std::vector<RootPath> Paths() const override { return {}; }

  Status Connect(Deadline, const HostProcess*) override { return {}; }

  Status Configure(Deadline) override { return {}; }

  Status Boot(Deadline) override { return {}; }

  Status Restore(Deadline) override { return {}; }

  Status Pause(Deadline) override { return {}; }

  Status Resume(Deadline) override { return {}; }

  Result<VmStatus> GetStatus(Deadline) override { return VmStatus(); }

  Result<VmSizes> GetSizes(Deadline) override { return VmSizes(); }

  Result<std::string> AddDisk(const Disk& disk, Deadline) override { return disk.serial; }

  Status RemoveDisk(const std::string&, Deadline) override { return {}; }

  Status AddNic(const Nic&, Deadline) override { return {}; }

  Status RemoveNic(const std::string&, Deadline) override { return {}; }

  Status AddFileSystem(const FileSystem&, Deadline) override { return {}; }

  Status RemoveFileSystem(const std::string&, Deadline) override { return {}; }

  Status AddVsock(const Vsock&, Deadline) override { return {}; }

  Status SetCpus(uint32_t, Deadline) override { return {}; }

  Status SetMemory(uint64_t, Deadline) override { return {}; }

  Status SetBalloon(uint64_t, Deadline) override { return {}; }

  Status TakeSnapshot(const Snapshot&, Deadline) override { return {}; }

  Status Stop(Deadline) override { return {}; }

  Status Kill(Deadline) override { return {}; }

  VmEnd Ended(const WaitStatus& status) override { return EndOf("QEMU", status); }
};

}  // namespace gantry::vmm
