// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/hypervisor/firecracker/firecracker.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/process/spawn_builder.h>

#include "plugins/vmm/hypervisor/firecracker/documents.h"
#include "plugins/vmm/hypervisor/rest/rest.h"

namespace gantry::vmm {
namespace firecracker {
namespace {

constexpr Vmm kMe = Vmm::kFirecracker;
/// Memory is added by slots of that size. Source: docs/memory-hotplug.md.
constexpr uint64_t kSlot = 128 * kMiB;
constexpr uint32_t kMostCpus = 32;

std::string WordsIn(const Json& body) {
  const auto words = body.is_object() ? body.find("fault_message") : body.end();
  return body.is_object() && words != body.end() && words->is_string() ? words->get<std::string>()
                                                                       : std::string();
}

Result<uint64_t> NumberIn(const Json& answer, const char* name, std::string_view target) {
  const auto found = answer.is_object() ? answer.find(name) : answer.end();
  if (!answer.is_object() || found == answer.end() || !found->is_number_unsigned()) {
    return Fail(Code::kDataLoss, "ask Firecracker to 'GET {}': its answer has no number '{}'",
                target, name);
  }
  return found->get<uint64_t>();
}

/// Source: firecracker, src/vmm/src/lib.rs, FcExitCode.
std::string_view MeaningOf(uint32_t code) {
  constexpr uint32_t kBadSystemCall = 148;
  constexpr uint32_t kBadConfiguration = 152;
  constexpr uint32_t kBadArguments = 153;
  constexpr uint32_t kCpuTime = 154;
  switch (code) {
    case kBadSystemCall:
      return ": it made a system call that its filter does not let through";
    case kBadConfiguration:
      return ": its configuration is wrong";
    case kBadArguments:
      return ": it does not know its arguments; is it older than gantry wants?";
    case kCpuTime:
      return ": it had used up its CPU time";
    default:
      return "";
  }
}

class Driver : public Hypervisor {
 public:
  Driver(VmConfig config, FirecrackerOptions options)
      : config_(std::move(config)),
        options_(std::move(options)),
        root_(options_.jailer ? JailRoot(*options_.jailer, options_.program, config_.id)
                              : std::string()),
        // All that it refuses is a 400, mostly since the VM has been started or has not.
        rest_({.vmm = "Firecracker", .words = WordsIn, .bad_request = Code::kFailedPrecondition},
              root_ + options_.control_socket) {}

  Vmm vmm() const override { return kMe; }

  Traits traits() const override {
    return {.disks = options_.pci,
            .nics = options_.pci,
            .memory = config_.memory.max_bytes > config_.memory.bytes,
            .tap_by_name = true,
            .guest_rescans = true};
  }

  Result<SpawnRequest> Describe() override {
    SpawnBuilder child;
    if (options_.jailer) {
      AddJailer(*options_.jailer, child);
    } else {
      child.Add({"--id", config_.id});
    }
    child.Add({"--api-sock", options_.control_socket});
    if (options_.pci) {
      child.Add("--enable-pci");
    }
    const std::string& path = options_.jailer ? options_.jailer->program : options_.program;
    GANTRY_TRY(const UniqueFd program,
               OpenVmm(kMe, path, "Firecracker and its jailer from the project's releases"));
    return child.Finish(path, program);
  }

  std::vector<RootPath> Paths() const override {
    std::vector<RootPath> paths = PathsIn(config_);
    // By which it opens taps, also those that come later.
    paths.push_back({.path = "/dev/net/tun"});
    return paths;
  }

  Status Connect(Deadline deadline, const HostProcess* process) override {
    GANTRY_CHECK_OK(rest_.Await(deadline, process));
    GANTRY_CHECK_OK(rest_.Get("/version", deadline));
    return {};
  }

  Status Configure(Deadline deadline) override {
    if (config_.from) {
      // It loads a snapshot only as long as it has been told nothing.
      return {};
    }
    for (const auto& [target, document] : VmDocuments(config_)) {
      GANTRY_CHECK_OK(rest_.Put(target, document, deadline));
    }
    return {};
  }

  Status Boot(Deadline deadline) override {
    if (config_.from) {
      return Fail(Code::kFailedPrecondition, "boot a VM of Firecracker: it is one of a snapshot");
    }
    return Act("InstanceStart", deadline);
  }

  Status Restore(Deadline deadline) override {
    if (!config_.from) {
      return Fail(Code::kFailedPrecondition,
                  "restore a VM of Firecracker: it was made without a snapshot");
    }
    return rest_.Put("/snapshot/load", LoadDocument(config_, *config_.from), deadline);
  }

  Status Pause(Deadline deadline) override {
    return rest_.Patch("/vm", {{"state", "Paused"}}, deadline);
  }

  Status Resume(Deadline deadline) override {
    return rest_.Patch("/vm", {{"state", "Resumed"}}, deadline);
  }

  Status Stop(Deadline deadline) override { return Act("SendCtrlAltDel", deadline); }

  Status Kill(Deadline) override { return Unsupported(kMe, "be asked to end", "kill its process"); }

  Result<VmStatus> GetStatus(Deadline deadline) override {
    GANTRY_TRY(const Json answer, rest_.Get("/", deadline));
    const auto state = answer.is_object() ? answer.find("state") : answer.end();
    if (!answer.is_object() || state == answer.end() || !state->is_string()) {
      return Fail(Code::kDataLoss, "ask Firecracker to 'GET /': its answer has no state");
    }
    VmStatus status{.state = RunState::kPrepared, .word = state->get<std::string>()};
    if (status.word == "Running") {
      status.state = RunState::kRunning;
    } else if (status.word == "Paused") {
      status.state = RunState::kPaused;
    }
    return status;
  }

  Result<VmSizes> GetSizes(Deadline deadline) override {
    VmSizes sizes;
    GANTRY_TRY(const Json machine, rest_.Get("/machine-config", deadline));
    GANTRY_TRY(const uint64_t cpus, NumberIn(machine, "vcpu_count", "/machine-config"));
    GANTRY_TRY(const uint64_t mib, NumberIn(machine, "mem_size_mib", "/machine-config"));
    sizes.cpus = static_cast<uint32_t>(cpus);
    sizes.memory_bytes = mib * kMiB;
    if (traits().memory) {
      GANTRY_TRY(const Json more, rest_.Get("/hotplug/memory", deadline));
      GANTRY_TRY(const uint64_t plugged, NumberIn(more, "plugged_size_mib", "/hotplug/memory"));
      sizes.memory_bytes += plugged * kMiB;
    }
    if (config_.balloon) {
      GANTRY_TRY(const Json balloon, rest_.Get("/balloon", deadline));
      GANTRY_TRY(const uint64_t amount, NumberIn(balloon, "amount_mib", "/balloon"));
      sizes.balloon_bytes = amount * kMiB;
      sizes.memory_bytes -= std::min(sizes.memory_bytes, sizes.balloon_bytes);
    }
    return sizes;
  }

  Result<std::string> AddDisk(const Disk& disk, Deadline deadline) override {
    GANTRY_CHECK_OK(CheckDisk(disk));
    GANTRY_CHECK_OK(RequirePci("add a disk to a running VM"));
    GANTRY_TRY(std::string serial, FirecrackerSerial(root_ + disk.path));
    const auto [target, document] = DiskDocument(disk);
    if (Status put = rest_.Put(target, document, deadline); !put) {
      return std::unexpected(HasDrive(disk.serial, deadline)
                                 ? Error{Code::kAlreadyExists, 0, put.error().message, {}}
                                 : std::move(put).error());
    }
    return serial;
  }

  Status RemoveDisk(const std::string& serial, Deadline deadline) override {
    GANTRY_CHECK_OK(RequirePci("remove a disk from a running VM"));
    return rest_.Delete(Format("/drives/{}", serial), deadline);
  }

  Status AddNic(const Nic& nic, Deadline deadline) override {
    GANTRY_CHECK_OK(CheckNic(nic));
    GANTRY_CHECK_OK(RequirePci("add a NIC to a running VM"));
    GANTRY_CHECK_OK(RequireTapName(nic));
    const auto [target, document] = NicDocument(nic);
    return rest_.Put(target, document, deadline);
  }

  Status RemoveNic(const std::string& id, Deadline deadline) override {
    GANTRY_CHECK_OK(RequirePci("remove a NIC from a running VM"));
    return rest_.Delete(Format("/network-interfaces/{}", id), deadline);
  }

  Status AddFileSystem(const FileSystem&, Deadline) override { return WithoutFileSystems(); }

  Status RemoveFileSystem(const std::string&, Deadline) override { return WithoutFileSystems(); }

  Status AddVsock(const Vsock&, Deadline) override {
    return Unsupported(kMe, "add a vsock device to a running VM",
                       "it has to be in the configuration; one that is restored brings its own");
  }

  Status SetCpus(uint32_t, Deadline) override {
    return Unsupported(kMe, "change how many CPUs a VM has",
                       "start it with as many as its pod may need");
  }

  Status SetMemory(uint64_t bytes, Deadline deadline) override {
    if (!traits().memory) {
      return Unsupported(kMe, "add memory to this VM", "it was made with all that it can have");
    }
    if (bytes < config_.memory.bytes || bytes > config_.memory.max_bytes) {
      return Fail(Code::kInvalidArgument,
                  "give a VM of Firecracker {} bytes of memory: it can have {} to {}", bytes,
                  config_.memory.bytes, config_.memory.max_bytes);
    }
    const uint64_t more = (bytes - config_.memory.bytes + kMemoryBlock - 1) / kMemoryBlock;
    return rest_.Patch("/hotplug/memory", {{"requested_size_mib", more * kMemoryBlock / kMiB}},
                       deadline);
  }

  Status SetBalloon(uint64_t bytes, Deadline deadline) override {
    if (!config_.balloon) {
      return Unsupported(kMe, "take memory from this VM", "it was made without a balloon");
    }
    return rest_.Patch("/balloon", {{"amount_mib", bytes / kMiB}}, deadline);
  }

  Status TakeSnapshot(const Snapshot& snapshot, Deadline deadline) override {
    if (snapshot.memory == Snapshot::Memory::kInItsFile) {
      return Unsupported(kMe, "take a snapshot without the memory", "have it saved");
    }
    return rest_.Put("/snapshot/create", SnapshotDocument(snapshot), deadline);
  }

  VmEnd Ended(const WaitStatus& status) override {
    VmEnd end = EndOf("Firecracker", status);
    if (end.cause == EndCause::kVmmFailed) {
      end.words += MeaningOf(status.code());
    }
    return end;
  }

 private:
  void AddJailer(const Jailer& jailer, SpawnBuilder& child) const {
    child.Add({"--id", config_.id, "--exec-file", options_.program});
    child.Add({"--uid", Format("{}", jailer.uid), "--gid", Format("{}", jailer.gid)});
    child.Add({"--chroot-base-dir", jailer.base});
    if (!jailer.network_namespace.empty()) {
      child.Add({"--netns", jailer.network_namespace});
    }
    // What is behind it is Firecracker's; the jailer gives it the id itself.
    child.Add("--");
  }

  Status Act(std::string_view action, Deadline deadline) {
    return rest_.Put("/actions", {{"action_type", action}}, deadline);
  }

  /// Of all that it refuses it says but why, in words.
  bool HasDrive(const std::string& id, Deadline deadline) {
    const auto config = rest_.Get("/vm/config", deadline);
    if (!config || !config->is_object() || !config->contains("drives")) {
      return false;
    }
    return std::ranges::any_of(config->at("drives"), [&](const Json& drive) {
      return drive.is_object() && drive.contains("drive_id") && drive.at("drive_id") == id;
    });
  }

  Status RequirePci(std::string_view operation) const {
    if (!options_.pci) {
      return Unsupported(kMe, operation, "it was started without PCI (from Firecracker 1.16 on)");
    }
    return {};
  }

  static Status WithoutFileSystems() {
    return Unsupported(kMe, "share a file system",
                       "it has no virtiofs; give roots and volumes as block images");
  }

  static Status RequireTapName(const Nic& nic) {
    if (nic.tap_name.empty()) {
      return Unsupported(kMe, "take a tap by its descriptor",
                         "name it, and start Firecracker in its network namespace");
    }
    return {};
  }

  friend Status CheckConfig(const VmConfig& config);

  const VmConfig config_;
  const FirecrackerOptions options_;
  /// The jail's; empty: it has the host's.
  const std::string root_;
  Rest rest_;
};

Status CheckConfig(const VmConfig& config) {
  GANTRY_CHECK_OK(CheckVmConfig(config));
  if (!config.file_systems.empty()) {
    return Driver::WithoutFileSystems();
  }
  for (const Nic& nic : config.nics) {
    GANTRY_CHECK_OK(Driver::RequireTapName(nic));
  }
  if (config.cpus.max > config.cpus.boot) {
    return Unsupported(kMe, "change how many CPUs a VM has",
                       "start it with as many as its pod may need");
  }
  if (config.cpus.boot > kMostCpus || (config.cpus.boot > 1 && config.cpus.boot % 2 != 0)) {
    return Fail(Code::kInvalidArgument,
                "VM: {} CPUs: Firecracker takes 1, or an even number of up to {}", config.cpus.boot,
                kMostCpus);
  }
  if (config.memory.backing == MemoryBacking::kFile) {
    return Unsupported(kMe, "have a VM's memory in a file", "have it saved with the snapshot");
  }
  if (config.memory.max_bytes > config.memory.bytes &&
      (config.memory.max_bytes - config.memory.bytes) % kSlot != 0) {
    return Fail(Code::kInvalidArgument,
                "VM: {} bytes of memory to be added: Firecracker takes whole 128 MiB",
                config.memory.max_bytes - config.memory.bytes);
  }
  if (config.vsock && config.vsock->uds.empty()) {
    return Unsupported(kMe, "use another's vsock device",
                       "name the socket where it is to listen itself");
  }
  return {};
}

}  // namespace
}  // namespace firecracker

std::string JailRoot(const Jailer& jailer, const std::string& program, const std::string& id) {
  return Format("{}/{}/{}/root", jailer.base, program.substr(program.find_last_of('/') + 1), id);
}

Result<std::string> FirecrackerSerial(const std::string& path) {
  constexpr size_t kMostBytes = 20;
  struct stat file{};
  if (stat(path.c_str(), &file) != 0) {
    return FailErrno(errno, "look at the disk '{}'", path);
  }
  return Format("{}{}{}", file.st_dev, file.st_rdev, file.st_ino).substr(0, kMostBytes);
}

Result<std::unique_ptr<Hypervisor>> MakeFirecracker(VmConfig config, FirecrackerOptions options) {
  GANTRY_CHECK_OK(firecracker::CheckConfig(config));
  return std::make_unique<firecracker::Driver>(std::move(config), std::move(options));
}

}  // namespace gantry::vmm
