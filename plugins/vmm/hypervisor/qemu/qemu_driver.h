// SPDX-License-Identifier: Apache-2.0
//
// The driver of `MakeQemu`: what its operations are in QMP.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plugins/vmm/hypervisor/qemu/devices.h"
#include "plugins/vmm/hypervisor/qemu/qemu.h"
#include "plugins/vmm/hypervisor/qemu/qmp.h"

namespace gantry::vmm::qemu {

class Driver : public Hypervisor {
 public:
  /// One of QMP's with one argument.
  struct Command {
    const char* name;
    const char* argument;
  };

  Driver(VmConfig config, QemuOptions options)
      : config_(std::move(config)), options_(std::move(options)), qmp_(options_.control_socket) {}

  Vmm vmm() const override { return Vmm::kQemu; }

  Traits traits() const override;
  Result<SpawnRequest> Describe() override;

  std::vector<RootPath> Paths() const override { return PathsIn(config_); }

  Status Connect(Deadline deadline, const HostProcess* process) override;
  Status Configure(Deadline deadline) override;
  Status Boot(Deadline deadline) override;
  Status Restore(Deadline deadline) override;
  Status Pause(Deadline deadline) override;
  Status Resume(Deadline deadline) override;
  Result<VmStatus> GetStatus(Deadline deadline) override;
  Result<VmSizes> GetSizes(Deadline deadline) override;
  Result<std::string> AddDisk(const Disk& disk, Deadline deadline) override;
  Status RemoveDisk(const std::string& serial, Deadline deadline) override;
  Status AddNic(const Nic& nic, Deadline deadline) override;
  Status RemoveNic(const std::string& id, Deadline deadline) override;
  Status AddFileSystem(const FileSystem& file_system, Deadline deadline) override;
  Status RemoveFileSystem(const std::string& tag, Deadline deadline) override;
  Status AddVsock(const Vsock& vsock, Deadline deadline) override;
  Status SetCpus(uint32_t count, Deadline deadline) override;
  Status SetMemory(uint64_t bytes, Deadline deadline) override;
  Status SetBalloon(uint64_t bytes, Deadline deadline) override;
  Status TakeSnapshot(const Snapshot& snapshot, Deadline deadline) override;
  Status Stop(Deadline deadline) override;
  Status Kill(Deadline deadline) override;
  VmEnd Ended(const WaitStatus& status) override;

 private:
  Status Do(std::string_view command, Deadline deadline) { return Do(command, Json(), deadline); }

  Status Do(std::string_view command, const Json& arguments, Deadline deadline);
  /// Gives QEMU a descriptor under a name.
  Status Give(const std::string& name, const UniqueFd& fd, Deadline deadline);
  /// Opens a disk and gives it; QEMU's path of it.
  Result<std::string> GiveDisk(const Disk& disk, Deadline deadline);
  /// Gives an open file; QEMU's path of it, until the sets of that name are dropped.
  Result<std::string> GiveFile(const std::string& name, const UniqueFd& file, Deadline deadline);
  /// QEMU closes descriptors of that name, as soon as nothing uses them. Again: nothing.
  Status DropFdSets(const std::string& name, Deadline deadline);
  /// Ids of devices that have one.
  Result<std::vector<std::string>> Ids(Deadline deadline);
  /// Where a new device goes. Errors: kAlreadyExists; kResourceExhausted.
  Result<Place> NewPlace(Kind kind, std::string_view name, Deadline deadline);
  /// The id of one that was added; empty: there is none. Errors: kFailedPrecondition: it was there
  /// at boot.
  Result<std::string> AddedId(Kind kind, std::string_view name, Deadline deadline);
  /// device_del, and the guest's letting go. Again: success.
  Status Unplug(Kind kind, const std::string& name, Deadline deadline);
  /// The device and what stands behind it. Errors: kNotFound: neither is there.
  Status Remove(Kind kind, const std::string& name, const Command& backend, Deadline deadline);
  Status UnplugCpu(const std::string& id, Deadline deadline);
  Status AddCpu(const Json& slot, uint32_t number, Deadline deadline);
  Result<uint64_t> MoreMemory(const char* property, Deadline deadline);
  Status Migrate(std::string_view command, const Snapshot& snapshot, const std::string& file,
                 Deadline deadline);
  Status AddAfterRestore(Deadline deadline);

  const VmConfig config_;
  const QemuOptions options_;
  Qmp qmp_;
};

}  // namespace gantry::vmm::qemu
