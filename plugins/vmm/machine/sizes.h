// SPDX-License-Identifier: Apache-2.0
//
// How large a VM is. It starts with what the handler's options say; each container's limits are
// added to it before the container is made, and taken back when it is gone.
//
//   cpus   = options.cpus + the containers' CPU limits, rounded up to whole ones
//   memory = options.memory_mib + the containers' memory limits
//
// What the options say is what the guest's own kernel and agent need and what containers without
// limits share: a RuntimeClass has it, and the VMM's own needs, as its overhead. A VM never grows
// beyond its maximum: limits may well add up to more than a node has, as they may without VMs.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/toolkit/sync/mutex.h>

#include "plugins/vmm/hypervisor/hypervisor.h"
#include "plugins/vmm/machine/guest_calls.h"
#include "plugins/vmm/options.h"

namespace gantry::vmm {

/// The limits of a container, or of a pod. 0: none.
struct ContainerSize {
  uint64_t milli_cpus = 0;
  uint64_t memory_bytes = 0;

  bool operator==(const ContainerSize&) const = default;
};

/// As `linux.resources` has them: what is not above 0 is no limit, as is what no node has.
ContainerSize SizeOf(int64_t cpu_quota, uint64_t cpu_period, int64_t memory_limit);

/// Of a VM at its start, and what it can grow to. Whole CPUs and MiB.
struct MachineSize {
  uint32_t cpus = 1;
  uint32_t max_cpus = 1;
  uint64_t memory_bytes = 256 * kMiB;
  uint64_t max_memory_bytes = 256 * kMiB;

  bool operator==(const MachineSize&) const = default;
};

struct NodeSize {
  uint32_t cpus = 1;
  uint64_t memory_bytes = 0;
};

/// Of this node. Blocks: briefly.
NodeSize SizeOfNode();

/// What a VM starts with. `pod`: its limits as a whole, as far as they are known beforehand: they
/// count where the VMM can add no CPUs, or no memory, later.
MachineSize StartSize(const VmmOptions& options, const NodeSize& node, const ContainerSize& pod);

/// Of one machine. Thread: any; one call after the other.
class Sizes {
 public:
  /// Both are borrowed.
  Sizes(GuestCalls& guest, Hypervisor& hypervisor, const MachineSize& start);

  /// Room for a container, or another one than it had. On failure it is as it was before. CPUs that
  /// the guest does not take are no failure: those that it has are shared. Errors:
  /// kResourceExhausted: the guest did not take the memory until `deadline`; those of the VMM.
  Status Set(const std::string& container, const ContainerSize& size, Deadline deadline);
  /// Its room is taken back, as far as the guest gives it; the rest serves the next one. Again:
  /// nothing.
  void Remove(const std::string& container, Deadline deadline);
  /// It had its room from an engine before this one; nobody is asked.
  void Know(const std::string& container, const ContainerSize& size);

 private:
  struct Target {
    uint32_t cpus = 0;
    uint64_t memory_bytes = 0;

    bool operator==(const Target&) const = default;
  };

  using Containers = std::map<std::string, ContainerSize>;

  Target TargetOf(const Containers& containers) const;
  Status Reach(const Target& target, Deadline deadline) GANTRY_REQUIRES(asking_);
  Status GrowMemory(uint64_t bytes, Deadline deadline) GANTRY_REQUIRES(asking_);
  Status AwaitMemory(uint64_t bytes, Deadline deadline);
  void SwitchOn(Deadline deadline) GANTRY_REQUIRES(asking_);

  GuestCalls& guest_;
  Hypervisor& hypervisor_;
  const MachineSize start_;
  /// Held while VMM and guest are asked.
  Mutex asking_;
  Containers containers_ GANTRY_GUARDED_BY(asking_);
  /// What they were asked for last.
  Target now_ GANTRY_GUARDED_BY(asking_);
  bool takes_cpus_ GANTRY_GUARDED_BY(asking_) = true;
};

}  // namespace gantry::vmm
