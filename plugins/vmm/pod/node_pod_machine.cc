// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/pod/node_pod_machine.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/proto/proto_message.h>

#include "plugins/vmm/hypervisor/accelerator.h"
#include "plugins/vmm/machine/directory.h"
#include "plugins/vmm/machine/sizes.h"
#include "plugins/vmm/machine/users.h"
#include "plugins/vmm/network/port_forwarding.h"

namespace gantry::vmm {
namespace {

/// Of one connection to a port of the guest, and for all of them to end.
constexpr std::chrono::milliseconds kForwardTime{10'000};

ContainerSize SizeOfLimits(const Limits& limits) {
  return SizeOf(limits.cpu_quota, limits.cpu_period, limits.memory);
}

MachineEvents EventsOf(PodMachineEvents events) {
  return {.exited = std::move(events.exited),
          .out_of_memory = std::move(events.out_of_memory),
          .reconnected = std::move(events.reconnected),
          .ended = std::move(events.ended)};
}

struct Saved {
  std::string network{};
  std::string machine{};

  void Each(this auto& self, auto&& field) {
    field(1, self.network);
    field(2, self.machine);
  }
};

Result<Saved> SavedIn(const std::string& bytes) {
  auto saved = DecodeProto<Saved>(bytes);
  if (!saved) {
    return Fail(Code::kDataLoss, "read the state of a machine: {}", saved.error().message);
  }
  return saved;
}

/// Errors: kFailedPrecondition.
Status CheckTun() {
  constexpr const char* kTun = "/dev/net/tun";
  constexpr mode_t kOthers = S_IROTH | S_IWOTH;
  struct stat info{};
  if (::stat(kTun, &info) != 0 || (info.st_mode & kOthers) == kOthers) {
    return {};
  }
  return Fail(Code::kFailedPrecondition,
              "connect a VM whose VMM opens its taps itself: '{}' is not for everybody, as udev "
              "makes it: chmod 0666, or set the option 'users: 0', by which VMMs run as root",
              kTun);
}

}  // namespace

NodePodMachine::NodePodMachine(const SandboxRequest& request, SandboxContext& context,
                               VmmOptions options, const MachineMeans& means)
    : id_(request.id.str()),
      context_(context),
      options_(std::move(options)),
      means_(means),
      directory_(SandboxDirectory(options_, request.ns.str(), id_)) {}

MachineRequest NodePodMachine::RequestOf(const PodMachineRequest& request) const {
  MachineRequest wanted;
  wanted.id = id_;
  wanted.directory = directory_;
  wanted.options = options_;
  wanted.size = StartSize(options_, SizeOfNode(), SizeOfLimits(request.limits));
  wanted.cgroups = request.cgroups;
  wanted.netns = request.netns_path;
  return wanted;
}

StorageRequest NodePodMachine::StorageRequestOf(const PodMachineRequest& request, Traits traits) {
  StorageRequest wanted;
  wanted.directory = directory_;
  wanted.options = options_.storage;
  wanted.cgroups = request.cgroups;
  wanted.traits = traits;
  wanted.disk_places = options_.hotplug_ports;
  wanted.ended = [this](const Error& why) { OnFilesGone(why); };
  return wanted;
}

// The user is the machine's: it has the same when it asks.
Result<NetworkRequest> NodePodMachine::NetworkRequestOf(const std::string& netns,
                                                        const Traits& traits) const {
  NetworkRequest wanted{.netns = netns};
  if (traits.tap_by_name) {
    GANTRY_TRY(const auto user, TakeUser(options_, directory_));
    if (user && !netns.empty()) {
      GANTRY_CHECK_OK(CheckTun());
    }
    wanted.tap_user = user.value_or(0);
  }
  return wanted;
}

void NodePodMachine::OnFilesGone(const Error& why) {
  std::shared_ptr<HostProcess> vmm;
  {
    const MutexLock lock(mutex_);
    files_gone_ = why;
    vmm = vmm_;
  }
  // They go with it, too; and in a shutdown that is as it should be.
  if (!is_down_ && vmm && !vmm->Ended()) {
    context_.Log(LogLevel::kError,
                 "the guest's files are gone, its machine is killed: " + why.message);
    IgnoreError(vmm->Signal(SIGKILL), "it has ended just now");
  }
}

void NodePodMachine::ForwardItsPorts(const Network& network,
                                     const std::vector<std::string>& cgroups) {
  if (network.netns().empty()) {
    return;
  }
  PortForwarding wanted{.netns = network.netns(), .ports = {}, .cgroups = cgroups, .program = {}};
  wanted.ports.ask = [machine = machine_.get()](const protocol::Forward& request,
                                                Deadline deadline) -> Status {
    GANTRY_CHECK_OK(machine->Call(request, deadline));
    return {};
  };
  wanted.ports.streams = &machine_->streams();
  wanted.ports.limit = kForwardTime;
  forward_ = ForwardPorts(context_, wanted);
}

Status NodePodMachine::StartParts(PodMachineRequest request, PodMachineEvents events,
                                  Deadline deadline) {
  MachineRequest wanted = RequestOf(request);
  GANTRY_CHECK_OK(MakeSandboxDirectory(directory_));
  GANTRY_TRY(const Traits traits, TraitsOf(means_, options_));
  GANTRY_TRY(const NetworkRequest network, NetworkRequestOf(request.netns_path, traits));
  GANTRY_TRY(network_, Network::Connect(network));
  GANTRY_TRY(storage_, Storage::Make(context_, StorageRequestOf(request, traits)));
  wanted.nics = network_->TakeNics();
  wanted.file_systems = storage_->file_systems();
  wanted.set_up = std::move(request.set_up);
  network_->FillSetUp(wanted.set_up);
  GANTRY_TRY(machine_, Machine::Start(context_, means_, std::move(wanted),
                                      EventsOf(std::move(events)), deadline));
  ForwardItsPorts(*network_, request.cgroups);
  const MutexLock lock(mutex_);
  vmm_ = machine_->process();
  return files_gone_ ? Status(std::unexpected(*files_gone_)) : Status();
}

Status NodePodMachine::LetGo() {
  GANTRY_CHECK_OK(Shutdown({}));
  if (machine_) {
    machine_->Silence();
  }
  machine_.reset();
  storage_.reset();
  network_.reset();
  const MutexLock lock(mutex_);
  vmm_.reset();
  files_gone_.reset();
  return {};
}

// One that was recovered is there where its start was on no record, and is undone: its VMM is dead,
// and what serves the files ends after it, while the next one starts.
Status NodePodMachine::Start(PodMachineRequest request, PodMachineEvents events,
                             Deadline deadline) {
  if (machine_ || storage_ || network_) {
    GANTRY_CHECK_OK(LetGo());
  }
  is_down_ = false;
  Status started = StartParts(std::move(request), std::move(events), deadline);
  if (!started) {
    IgnoreError(LetGo(), "the first error counts");
  }
  return started;
}

std::string NodePodMachine::ReadSaved(const std::string& saved) {
  if (saved.empty()) {
    return {};
  }
  auto known = SavedIn(saved);
  auto network = known && !known->network.empty()
                     ? Network::Recover(known->network)
                     : Fail(Code::kDataLoss, "read the state of a machine: {}",
                            known ? "its network is missing" : known.error().message);
  if (!network) {
    context_.Log(LogLevel::kError,
                 network.error().message + "; the machine, its files and its network are ended");
    return {};
  }
  network_ = std::move(*network);
  return std::move(known->machine);
}

Status NodePodMachine::RecoverParts(const PodMachineRequest& request, const std::string& saved,
                                    PodMachineEvents events) {
  const std::string known = ReadSaved(saved);
  if (!network_) {
    // What its start may have come to: made anew, it can be removed.
    if (auto network = Network::Connect({.netns = request.netns_path})) {
      network_ = std::move(*network);
    }
  }
  // Without a driver the machine says so itself, and its files are to be found all the same.
  const Traits traits = TraitsOf(means_, options_).value_or(Traits{.file_systems = true});
  auto storage = Storage::Recover(context_, StorageRequestOf(request, traits));
  if (storage) {
    storage_ = std::move(*storage);
  }
  auto machine =
      Machine::Recover(context_, means_, RequestOf(request), known, EventsOf(std::move(events)));
  if (!machine) {
    return std::unexpected(std::move(machine).error());
  }
  machine_ = std::move(*machine);
  std::optional<Error> files_gone;
  {
    const MutexLock lock(mutex_);
    vmm_ = machine_->process();
    files_gone = files_gone_;
  }
  if (files_gone) {
    OnFilesGone(*files_gone);
  }
  if (network_ && !machine_->ended()) {
    ForwardItsPorts(*network_, request.cgroups);
  }
  return storage ? Status() : Status(std::unexpected(std::move(storage).error()));
}

Status NodePodMachine::Recover(const PodMachineRequest& request, const std::string& saved,
                               PodMachineEvents events, Deadline /*deadline*/) {
  Status recovered = RecoverParts(request, saved, std::move(events));
  // What is short now is tried again; else nobody could end any more what runs.
  if (recovered || recovered.error().code == Code::kResourceExhausted) {
    return recovered;
  }
  if (recovered.error().code != Code::kNotFound) {
    context_.Log(LogLevel::kError, recovered.error().message + "; the machine is ended");
    recovered = Fail(Code::kNotFound, "{}", recovered.error().message);
  }
  IgnoreError(Shutdown({}), "what is left is removed with the sandbox");
  return recovered;
}

std::string NodePodMachine::Save() const {
  return EncodeProto(
      Saved{.network = network_ ? network_->Save() : std::string(), .machine = machine_->Save()});
}

std::optional<Error> NodePodMachine::ended() const {
  if (is_down_ || !machine_) {
    return Error{Code::kUnavailable, 0, "it was shut down", {}};
  }
  return machine_->ended();
}

std::map<std::string, std::string> NodePodMachine::Describe() const {
  std::map<std::string, std::string> words;
  words["vmm"] = VmmName(options_.vmm);
  if (machine_) {
    words["agent"] = machine_->agent();
    words["accelerator"] = machine_->accelerator() == Accelerator::kKvm ? "kvm" : "tcg";
  }
  return words;
}

Status NodePodMachine::AddDisk(const Disk& disk, Deadline deadline) {
  const auto added = machine_->AddDisk(disk, deadline);
  // Containers share those that are read only.
  return added || added.error().code == Code::kAlreadyExists ? Status()
                                                             : std::unexpected(added.error());
}

Status NodePodMachine::RemoveDisk(const std::string& serial, Deadline deadline) {
  Status removed = machine_->RemoveDisk(serial, deadline);
  return !removed && removed.error().code == Code::kNotFound ? Status() : removed;
}

Status NodePodMachine::MakeRoom(const std::string& container, const Limits& limits,
                                Deadline deadline) {
  return machine_->sizes().Set(container, SizeOfLimits(limits), deadline);
}

void NodePodMachine::KnowRoom(const std::string& container, const Limits& limits) {
  machine_->sizes().Know(container, SizeOfLimits(limits));
}

Status NodePodMachine::GiveRoomBack(const std::string& container, Deadline deadline) {
  machine_->sizes().Remove(container, deadline);
  return {};
}

Status NodePodMachine::Shutdown(std::chrono::milliseconds limit) {
  const std::lock_guard lock(shutting_down_);
  is_down_ = true;
  if (machine_) {
    GANTRY_CHECK_OK(machine_->Shutdown(limit));
  }
  // What it has under way asks the machine, which answers nobody any more.
  GANTRY_CHECK_OK(
      forward::PortForward::End(context_, std::exchange(forward_, nullptr), kForwardTime));
  if (storage_) {
    GANTRY_CHECK_OK(storage_->Shutdown());
  }
  if (network_) {
    GANTRY_CHECK_OK(network_->Disconnect());
  }
  if (::rmdir(directory_.c_str()) != 0 && errno != ENOENT) {
    return FailErrno(errno, "remove '{}'", directory_);
  }
  return {};
}

}  // namespace gantry::vmm
