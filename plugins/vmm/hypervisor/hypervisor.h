// SPDX-License-Identifier: Apache-2.0
//
// One VM of one VMM (QEMU, Cloud Hypervisor, Firecracker), behind one interface. It starts no
// process: it says what is to be executed (`Describe`), the backend has the keeper do that, and
// from then on this object speaks over the VMM's control socket.
//
//   Describe -> [keeper spawns] -> Connect -> Configure -> Boot        a VM that boots
//                                          -> Configure -> Restore -> Resume   one of a snapshot
//   Connect                                an engine that finds the VM of the one before it
//
// All that is to be known of a running VM is asked of its VMM: a new engine makes the same object
// with the same configuration and goes on.
//
// Calls block up to their deadline and may come from any thread. There is one request at a time
// on each VMM's socket; who waits for his turn gives up at his deadline. What waits for the guest
// (a device that it has to let go of) keeps nobody else waiting.
//
// What a VMM has not is kUnimplemented, naming VMM, operation and what to do instead. (The Task
// API must not answer that to Create and Connect: it is for the backend to turn it into
// kFailedPrecondition there.) Other errors name the VMM, the request and its answer:
//   kUnavailable        nobody is at the socket, or he left before he had answered
//   kDeadlineExceeded   no answer in time; the request may take effect yet
//   kDataLoss           what came is no answer: not JSON, too long, too deep, half
//   kFailedPrecondition, kNotFound, kAlreadyExists, kInvalidArgument, kInternal: the VMM's answer
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/host_process.h>

#include "plugins/vmm/hypervisor/vm_config.h"
#include "plugins/vmm/hypervisor/vm_end.h"

namespace gantry::vmm {

enum class Vmm { kQemu, kCloudHypervisor, kFirecracker };

/// As people write it: "Cloud Hypervisor".
std::string_view VmmName(Vmm vmm);

/// What a VMM can do to a running VM, for plans: an operation that is not there is refused.
struct Traits {
  bool disks = false;
  bool nics = false;
  bool file_systems = false;
  bool vsock = false;
  bool cpus = false;
  bool memory = false;
  /// NICs are named, and the VMM has to live in the tap's network namespace.
  bool tap_by_name = false;
  /// The guest is told of no device: its agent looks for them on the PCI bus (`rescan`), and lets
  /// go of them before they are removed.
  bool guest_rescans = false;
};

enum class RunState {
  /// Not booted yet, nor restored.
  kPrepared,
  kRunning,
  kPaused,
  /// It will not run again: shut down, or its processor has failed.
  kEnded,
};

struct VmStatus {
  RunState state = RunState::kPrepared;
  /// The VMM's own word: "inmigrate", "BreakPoint".
  std::string word;
};

struct VmSizes {
  uint32_t cpus = 0;
  /// What the guest has been given so far of what it was offered, without what is in the balloon.
  uint64_t memory_bytes = 0;
  uint64_t balloon_bytes = 0;
};

/// Thread: any. Blocks: `Describe` briefly, all with a deadline up to it.
class Hypervisor {
 public:
  Hypervisor(const Hypervisor&) = delete;
  Hypervisor& operator=(const Hypervisor&) = delete;
  virtual ~Hypervisor() = default;

  virtual Vmm vmm() const = 0;
  virtual Traits traits() const = 0;

  /// The VMM as a process: arguments, environment, descriptors. Whose it is, its cgroups and its
  /// network namespace are the backend's to add. Makes the control socket that it inherits, where
  /// the VMM takes one; the request holds the only descriptor of it, so that a VMM that ends is
  /// noticed at once.
  /// Errors: kFailedPrecondition: the VMM is not installed; kInvalidArgument: the VM's
  /// configuration; kUnimplemented: this VMM has not what it asks for.
  virtual Result<SpawnRequest> Describe() = 0;
  /// What of the node it opens by name: has to be there where it has a root of its own.
  virtual std::vector<RootPath> Paths() const = 0;

  /// Until the VMM has said who it is. `process`, where it is given, is looked at while nobody is
  /// at the socket. Again: nothing where it is connected.
  virtual Status Connect(Deadline deadline, const HostProcess* process) = 0;
  /// What the VMM has not been told on its command line. Once, before Boot or Restore.
  virtual Status Configure(Deadline deadline) = 0;
  /// Errors: kFailedPrecondition: the VM is one of a snapshot.
  virtual Status Boot(Deadline deadline) = 0;
  /// Loads the snapshot that the configuration names; the VM is paused then. Devices that came
  /// with it are there; those that a snapshot cannot have (vsock, file systems of QEMU and Cloud
  /// Hypervisor) are added now. Errors: kFailedPrecondition: it names none.
  virtual Status Restore(Deadline deadline) = 0;

  virtual Status Pause(Deadline deadline) = 0;
  virtual Status Resume(Deadline deadline) = 0;
  virtual Result<VmStatus> GetStatus(Deadline deadline) = 0;
  virtual Result<VmSizes> GetSizes(Deadline deadline) = 0;

  /// Gives the serial that the guest sees: the disk's, but for Firecracker.
  /// Errors: kAlreadyExists; kResourceExhausted: no place is free.
  virtual Result<std::string> AddDisk(const Disk& disk, Deadline deadline) = 0;
  /// The guest has to let go of it. Errors: kNotFound; kDeadlineExceeded: it has not;
  /// kFailedPrecondition: it will not, or the disk was there at boot.
  virtual Status RemoveDisk(const std::string& serial, Deadline deadline) = 0;
  virtual Status AddNic(const Nic& nic, Deadline deadline) = 0;
  virtual Status RemoveNic(const std::string& id, Deadline deadline) = 0;
  virtual Status AddFileSystem(const FileSystem& file_system, Deadline deadline) = 0;
  virtual Status RemoveFileSystem(const std::string& tag, Deadline deadline) = 0;
  virtual Status AddVsock(const Vsock& vsock, Deadline deadline) = 0;

  /// The guest is offered, or asked to give back, until it has so many. Offering takes effect when
  /// the guest wants; CPUs that are taken away are waited for.
  virtual Status SetCpus(uint32_t count, Deadline deadline) = 0;
  /// In all, boot memory included. See `GetSizes` for what the guest has made of it.
  virtual Status SetMemory(uint64_t bytes, Deadline deadline) = 0;
  /// So much is taken from the guest; where it needs it, it takes it back.
  virtual Status SetBalloon(uint64_t bytes, Deadline deadline) = 0;

  /// Of a paused VM, which stays paused; QEMU needs a Resume before the next one.
  virtual Status TakeSnapshot(const Snapshot& snapshot, Deadline deadline) = 0;

  /// Presses the power button, which a guest may ignore.
  virtual Status Stop(Deadline deadline) = 0;
  /// Ends the VMM, if it answers: a signal to its process belongs behind it in any case.
  virtual Status Kill(Deadline deadline) = 0;

  /// Why it ended, once its process has. Blocks: briefly.
  virtual VmEnd Ended(const WaitStatus& status) = 0;

 protected:
  Hypervisor() = default;
};

/// `<VMM> cannot <operation>: <why>`, kUnimplemented. `why` says what to do instead.
std::unexpected<Error> Unsupported(Vmm vmm, std::string_view operation, std::string_view why);

/// Of `Hypervisor::Paths`: what a configuration names, but for its disks.
std::vector<RootPath> PathsIn(const VmConfig& config);

/// The program at `path`, to be executed. `package`: what brings it.
/// Errors: kFailedPrecondition, with path and package.
Result<UniqueFd> OpenVmm(Vmm vmm, const std::string& path, std::string_view package);

}  // namespace gantry::vmm
