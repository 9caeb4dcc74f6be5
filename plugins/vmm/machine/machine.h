// SPDX-License-Identifier: Apache-2.0
//
// One VM of a sandbox with what belongs to it: its vsock device (gantry-vsock), the connection to
// its agent, the streams that its guest dials. Either all of it is there, or it has ended: what
// kills one kills the others, and `MachineEvents::ended` says why, with what the console said last.
//
// VMM and vsock device are the keeper's children, found again by their tags. The next engine
// listens anew at the same places and the agent, which has lost its connection, dials again.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gantry/context.h>
#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/host_process.h>

#include "plugins/vmm/agent/events.h"
#include "plugins/vmm/agent/streams.h"
#include "plugins/vmm/hypervisor/hypervisor.h"
#include "plugins/vmm/hypervisor/vm_config.h"
#include "plugins/vmm/machine/guest_calls.h"
#include "plugins/vmm/machine/means.h"
#include "plugins/vmm/machine/sizes.h"
#include "plugins/vmm/options.h"
#include "plugins/vmm/protocol/greeting.h"
#include "plugins/vmm/protocol/messages.h"

namespace gantry::vmm {

/// What a machine is started with. To be found again it needs id, directory and options.
struct MachineRequest {
  /// The sandbox's, for errors and process lists.
  std::string id;
  /// Of the sandbox alone (`SandboxDirectory` of directory.h names one), on a tmpfs; made where it
  /// is not there. The machine's own files lie in `directory`/vm; with `VmmOptions::users` the VM's
  /// group may pass through it from then on, so what else lies in it is to protect itself.
  std::string directory;
  VmmOptions options;
  MachineSize size;
  /// What VMM and vsock device are born in.
  std::vector<std::string> cgroups;
  /// Where a VMM that opens its taps by name has to live (`Traits::tap_by_name`).
  std::string netns;
  std::vector<Nic> nics;
  /// Served already. Their sockets become the VMM's to connect to.
  std::vector<FileSystem> file_systems;
  std::vector<Disk> disks;
  /// Sent as soon as the agent has said hello, with clock and entropy, which are added.
  protocol::SetUp set_up;
};

/// Called on workers, of `exited` and `out_of_memory` one at a time; these two must not ask the
/// agent: no answer would be read. Null: not wanted. None is called any more when the machine has
/// been destroyed, which no event may do.
struct MachineEvents {
  std::function<void(const AgentExit& exit)> exited;
  std::function<void(const std::string& container, uint64_t kills)> out_of_memory;
  /// The agent has dialled anew, as it does after `Recover` too: what it told in between is lost,
  /// and it is to be asked for its `List`. It may be asked within this event.
  std::function<void()> reconnected;
  /// Once, and nothing after it: VMM, vsock device or agent is gone, and the others with it. Not
  /// for an end by `Shutdown`, nor for one that `Recover` has found: see `Machine::ended`.
  std::function<void(const Error& why)> ended;
};

/// Thread: any. Its destructor leaves the VM running: the next engine's.
class Machine final : public GuestCalls {
 public:
  /// Booted, greeted, and set up. On failure nothing is left. Errors: kFailedPrecondition: VMM,
  /// kernel or initrd are missing, the guest did not boot (with its console's last lines), its
  /// agent speaks another version, or the VMM has not what is asked for; kDeadlineExceeded: it has
  /// not said hello in time; kResourceExhausted: no user is left for it.
  /// Blocks: up to `deadline` or the options' boot timeout, whichever is sooner. `context` and
  /// `means` outlive it.
  static Result<std::unique_ptr<Machine>> Start(SandboxContext& context, const MachineMeans& means,
                                                MachineRequest request, MachineEvents events,
                                                Deadline deadline);
  /// The machine of an engine before this one. `blob`: what `Save` gave; empty: it was never saved,
  /// so its start was never finished. Does not wait for the agent; `Ask` does.
  /// Errors: kNotFound: it was never there, or its start was never finished; nothing is left of it.
  static Result<std::unique_ptr<Machine>> Recover(SandboxContext& context,
                                                  const MachineMeans& means, MachineRequest request,
                                                  const std::string& blob, MachineEvents events);
  ~Machine() override;

  /// For the sandbox's `SandboxContext::Save`, some 200 bytes. It stays the same.
  std::string Save() const;

  /// Why it has ended, if it has.
  std::optional<Error> ended() const;

  Result<std::string> Ask(protocol::Kind kind, std::string body, Deadline deadline) override;
  Status PostBytes(protocol::Kind kind, std::string body,
                   std::function<void(Result<std::string> answer)> answered) override;
  StreamListener& streams() override;
  std::shared_ptr<HostProcess> process() const override;

  /// As the hypervisor's, of a file that the VMM's user may not open by its path.
  Result<std::string> AddDisk(const Disk& disk, Deadline deadline);
  Status RemoveDisk(const std::string& serial, Deadline deadline);

  Hypervisor& hypervisor();
  Sizes& sizes();
  Accelerator accelerator() const;
  /// "gantry-agent 0.1.0 in Linux 6.1.0-38-cloud-amd64"; empty before the first hello.
  std::string agent() const;
  /// The console's last lines, printable.
  std::string Console() const;

  /// The agent is asked to shut down, then all of it is killed and removed; the directory too,
  /// where nothing else is in it. Again, and by two at once: allowed. Errors: kDeadlineExceeded:
  /// the kernel has not ended a process yet. Blocks: up to `limit`, and for the kills.
  Status Shutdown(std::chrono::milliseconds limit);
  /// None of its events runs, nor comes any more. Before it is destroyed where they reach it by the
  /// pointer that goes. Not within one.
  void Silence();

 private:
  class Parts;

  explicit Machine(std::unique_ptr<Parts> parts);

  const std::unique_ptr<Parts> parts_;
};

}  // namespace gantry::vmm
