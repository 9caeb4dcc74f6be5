// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/hypervisor/cloud_hypervisor/cloud_hypervisor.h"

#include <span>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/process/spawn_builder.h>

#include "plugins/vmm/hypervisor/cloud_hypervisor/documents.h"
#include "plugins/vmm/hypervisor/rest/rest.h"

namespace gantry::vmm {
namespace cloud_hypervisor {
namespace {

/// The chain of causes that it answers with, from the outermost on.
std::string WordsIn(const Json& body) {
  std::string words;
  if (!body.is_array()) {
    return words;
  }
  for (const Json& one : body) {
    if (one.is_string()) {
      words += (words.empty() ? "" : ": ") + one.get<std::string>();
    }
  }
  return words;
}

RunState StateOf(std::string_view word) {
  if (word == "Created") {
    return RunState::kPrepared;
  }
  if (word == "Running") {
    return RunState::kRunning;
  }
  return word == "Shutdown" ? RunState::kEnded : RunState::kPaused;
}

Result<uint64_t> NumberAt(const Json& answer, const Json::json_pointer& where) {
  if (!answer.is_structured() || !answer.contains(where) ||
      !answer.at(where).is_number_unsigned()) {
    return Fail(Code::kDataLoss, "ask Cloud Hypervisor to 'GET vm.info': its answer has no '{}'",
                where.to_string());
  }
  return answer.at(where).get<uint64_t>();
}

class Driver : public Hypervisor {
 public:
  Driver(VmConfig config, CloudHypervisorOptions options)
      : config_(std::move(config)),
        options_(std::move(options)),
        rest_({.vmm = "Cloud Hypervisor", .words = WordsIn}, options_.control_socket) {}

  Vmm vmm() const override { return Vmm::kCloudHypervisor; }

  Traits traits() const override {
    return {.disks = true,
            .nics = true,
            .file_systems = true,
            .vsock = true,
            .cpus = config_.cpus.max > config_.cpus.boot,
            .memory = config_.memory.max_bytes > config_.memory.bytes};
  }

  Result<SpawnRequest> Describe() override {
    GANTRY_TRY(UniqueFd listener, ListenUnix(options_.control_socket));
    SpawnBuilder child;
    child.Add("--api-socket");
    child.Add(Format("fd={}", child.Pass(std::move(listener))));
    child.Add("--seccomp");
    child.Add("true");
    GANTRY_TRY(const UniqueFd program,
               OpenVmm(vmm(), options_.program, "cloud-hypervisor from its project's releases"));
    return child.Finish(options_.program, program);
  }

  std::vector<RootPath> Paths() const override { return PathsIn(config_); }

  Status Connect(Deadline deadline, const HostProcess* process) override {
    GANTRY_CHECK_OK(rest_.Await(deadline, process));
    GANTRY_CHECK_OK(rest_.Get("/api/v1/vmm.ping", deadline));
    return {};
  }

  Status Configure(Deadline deadline) override {
    // A snapshot has its own.
    if (config_.from) {
      return {};
    }
    GANTRY_CHECK_OK(Put("vm.create", VmDocument(config_), deadline));
    return AddNics(deadline);
  }

  Status Boot(Deadline deadline) override {
    if (config_.from) {
      return Fail(Code::kFailedPrecondition,
                  "boot a VM of Cloud Hypervisor: it is one of a snapshot");
    }
    return Put("vm.boot", Json(), deadline);
  }

  Status Restore(Deadline deadline) override {
    if (!config_.from) {
      return Fail(Code::kFailedPrecondition,
                  "restore a VM of Cloud Hypervisor: it was made without a snapshot");
    }
    GANTRY_CHECK_OK(Put("vm.restore",
                        {{"source_url", "file://" + config_.from->directory}, {"prefault", false}},
                        deadline));
    for (const FileSystem& one : config_.file_systems) {
      GANTRY_CHECK_OK(AddFileSystem(one, deadline));
    }
    if (config_.vsock) {
      GANTRY_CHECK_OK(AddVsock(*config_.vsock, deadline));
    }
    return AddNics(deadline);
  }

  Status Pause(Deadline deadline) override { return Put("vm.pause", Json(), deadline); }

  Status Resume(Deadline deadline) override { return Put("vm.resume", Json(), deadline); }

  Status Stop(Deadline deadline) override { return Put("vm.power-button", Json(), deadline); }

  Status Kill(Deadline deadline) override { return Put("vmm.shutdown", Json(), deadline); }

  Result<VmStatus> GetStatus(Deadline deadline) override {
    Result<Json> answer = rest_.Get("/api/v1/vm.info", deadline);
    if (!answer && answer.error().code == Code::kNotFound) {
      return VmStatus{.state = RunState::kPrepared, .word = "not created"};
    }
    if (!answer) {
      return std::unexpected(std::move(answer).error());
    }
    const auto state = answer->is_object() ? answer->find("state") : answer->end();
    if (!answer->is_object() || state == answer->end() || !state->is_string()) {
      return Fail(Code::kDataLoss, "ask Cloud Hypervisor to 'GET vm.info': it has no state");
    }
    auto word = state->get<std::string>();
    return VmStatus{.state = StateOf(word), .word = std::move(word)};
  }

  Result<VmSizes> GetSizes(Deadline deadline) override {
    GANTRY_TRY(const Json answer, rest_.Get("/api/v1/vm.info", deadline));
    VmSizes sizes;
    GANTRY_TRY(const uint64_t cpus,
               NumberAt(answer, Json::json_pointer("/config/cpus/boot_vcpus")));
    sizes.cpus = static_cast<uint32_t>(cpus);
    GANTRY_TRY(sizes.memory_bytes, NumberAt(answer, Json::json_pointer("/memory_actual_size")));
    if (config_.balloon) {
      GANTRY_TRY(sizes.balloon_bytes, NumberAt(answer, Json::json_pointer("/config/balloon/size")));
    }
    return sizes;
  }

  Result<std::string> AddDisk(const Disk& disk, Deadline deadline) override {
    GANTRY_CHECK_OK(CheckDisk(disk));
    GANTRY_CHECK_OK(Put("vm.add-disk", DiskDocument(disk), deadline));
    return disk.serial;
  }

  Status RemoveDisk(const std::string& serial, Deadline deadline) override {
    return Remove(DiskId(serial), deadline);
  }

  Status AddNic(const Nic& nic, Deadline deadline) override {
    GANTRY_CHECK_OK(CheckNic(nic));
    if (!nic.tap) {
      return Unsupported(vmm(), "add a NIC whose tap is named",
                         "open the tap in its network namespace and give the descriptor");
    }
    const int tap = nic.tap.get();
    return rest_.Put("/api/v1/vm.add-net", NicDocument(nic), deadline, std::span(&tap, 1));
  }

  Status RemoveNic(const std::string& id, Deadline deadline) override {
    return Remove(NicId(id), deadline);
  }

  Status AddFileSystem(const FileSystem& file_system, Deadline deadline) override {
    GANTRY_CHECK_OK(CheckFileSystem(file_system));
    return Put("vm.add-fs", FileSystemDocument(file_system), deadline);
  }

  Status RemoveFileSystem(const std::string& tag, Deadline deadline) override {
    return Remove(FileSystemId(tag), deadline);
  }

  Status AddVsock(const Vsock& vsock, Deadline deadline) override {
    if (vsock.uds.empty()) {
      return Unsupported(vmm(), "use another's vsock device",
                         "name the socket where it is to listen itself");
    }
    return Put("vm.add-vsock", VsockDocument(vsock), deadline);
  }

  Status SetCpus(uint32_t count, Deadline deadline) override {
    if (!traits().cpus) {
      return Unsupported(vmm(), "add CPUs to this VM", "it was made with as many as it can have");
    }
    return Put("vm.resize", {{"desired_vcpus", count}}, deadline);
  }

  Status SetMemory(uint64_t bytes, Deadline deadline) override {
    if (!traits().memory) {
      return Unsupported(vmm(), "add memory to this VM", "it was made with all that it can have");
    }
    return Put("vm.resize", {{"desired_ram", bytes}}, deadline);
  }

  Status SetBalloon(uint64_t bytes, Deadline deadline) override {
    if (!config_.balloon) {
      return Unsupported(vmm(), "take memory from this VM", "it was made without a balloon");
    }
    return Put("vm.resize", {{"desired_balloon", bytes}}, deadline);
  }

  Status TakeSnapshot(const Snapshot& snapshot, Deadline deadline) override {
    if (snapshot.memory == Snapshot::Memory::kInItsFile) {
      return Unsupported(vmm(), "take a snapshot without the memory", "have it saved");
    }
    return Put("vm.snapshot", {{"destination_url", "file://" + snapshot.directory}}, deadline);
  }

  VmEnd Ended(const WaitStatus& status) override { return EndOf("Cloud Hypervisor", status); }

 private:
  Status Put(std::string_view action, const Json& body, Deadline deadline) {
    return rest_.Put(Format("/api/v1/{}", action), body, deadline);
  }

  Status Remove(const std::string& id, Deadline deadline) {
    return Put("vm.remove-device", {{"id", id}}, deadline);
  }

  Status AddNics(Deadline deadline) {
    for (const Nic& nic : config_.nics) {
      GANTRY_CHECK_OK(AddNic(nic, deadline));
    }
    return {};
  }

  const VmConfig config_;
  const CloudHypervisorOptions options_;
  Rest rest_;
};

}  // namespace
}  // namespace cloud_hypervisor

Result<std::unique_ptr<Hypervisor>> MakeCloudHypervisor(VmConfig config,
                                                        CloudHypervisorOptions options) {
  constexpr Vmm kMe = Vmm::kCloudHypervisor;
  GANTRY_CHECK_OK(CheckVmConfig(config));
  if (config.memory.backing == MemoryBacking::kFile) {
    return Unsupported(kMe, "have its memory in a file",
                       "restoring such memory is broken there; have it shared");
  }
  if (config.vsock && config.vsock->uds.empty()) {
    return Unsupported(kMe, "use another's vsock device",
                       "name the socket where it is to listen itself");
  }
  return std::make_unique<cloud_hypervisor::Driver>(std::move(config), std::move(options));
}

}  // namespace gantry::vmm
