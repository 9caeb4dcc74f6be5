// SPDX-License-Identifier: Apache-2.0
//
// What a pod stands on: its virtual machine, with the files and the network that belong to it, made
// and removed as one. plugins/vmm/pod has the one of the node; the tests of containers have one
// whose agent is a child of theirs.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gantry/deadline.h>
#include <gantry/error.h>

#include "plugins/vmm/agent/events.h"
#include "plugins/vmm/container/guest_spec.h"
#include "plugins/vmm/hypervisor/vm_config.h"
#include "plugins/vmm/machine/guest_calls.h"
#include "plugins/vmm/protocol/messages.h"
#include "plugins/vmm/storage/storage.h"

namespace gantry::vmm {

struct PodMachineRequest {
  /// What all that runs for it on the node is born in.
  std::vector<std::string> cgroups{};
  /// Empty: it has no network but its loopback.
  std::string netns_path{};
  /// Of the pod as a whole, where they are known beforehand.
  Limits limits{};
  /// The pod's name and settings; the network's part is added.
  protocol::SetUp set_up{};
};

/// Called on workers, of `exited` and `out_of_memory` one at a time; these two must not ask the
/// guest: no answer would be read. None is called any more when the machine has been destroyed,
/// which no event may do.
struct PodMachineEvents {
  std::function<void(const AgentExit& exit)> exited;
  std::function<void(const std::string& container, uint64_t kills)> out_of_memory;
  /// The agent was away and is there again: what it told in between is lost, and it is to be asked
  /// for its `List`, without waiting for it within this event.
  std::function<void()> reconnected;
  /// Once, and nothing after it: the machine has ended by itself.
  std::function<void(const Error& why)> ended;
};

/// Thread: any, `Start`, `Recover` and `Shutdown` one at a time.
class PodMachine {
 public:
  PodMachine(const PodMachine&) = delete;
  PodMachine& operator=(const PodMachine&) = delete;
  virtual ~PodMachine() = default;

  /// On failure nothing is left. Blocks: up to `deadline`, until the guest has said hello.
  virtual Status Start(PodMachineRequest request, PodMachineEvents events, Deadline deadline) = 0;
  /// As an engine before this one has started it. `saved`: of `Save`; empty: it was never finished.
  /// Errors: kNotFound: there is none, and nothing is left of what there may have been.
  virtual Status Recover(const PodMachineRequest& request, const std::string& saved,
                         PodMachineEvents events, Deadline deadline) = 0;
  /// For the sandbox's record. It stays the same.
  virtual std::string Save() const = 0;

  /// These are there once it was started or recovered.
  virtual GuestCalls& guest() = 0;
  virtual Storage& storage() = 0;
  /// Why it has ended, if it has; also where `Recover` has found none.
  virtual std::optional<Error> ended() const = 0;
  /// For people: which VMM, agent, accelerator.
  virtual std::map<std::string, std::string> Describe() const = 0;

  virtual Status AddDisk(const Disk& disk, Deadline deadline) = 0;
  /// One that is not there: success.
  virtual Status RemoveDisk(const std::string& serial, Deadline deadline) = 0;

  /// Makes it large enough for a container, or for other limits of it. Errors: kResourceExhausted.
  virtual Status MakeRoom(const std::string& container, const Limits& limits,
                          Deadline deadline) = 0;
  /// For one that an engine before this one has made room for.
  virtual void KnowRoom(const std::string& container, const Limits& limits) = 0;
  /// Again: nothing.
  virtual Status GiveRoomBack(const std::string& container, Deadline deadline) = 0;

  /// Ends it, politely first, and removes every trace. Again, and before it was started: success.
  virtual Status Shutdown(std::chrono::milliseconds limit) = 0;

 protected:
  PodMachine() = default;
};

}  // namespace gantry::vmm
