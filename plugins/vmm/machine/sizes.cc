// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/machine/sizes.h"

#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/process/backoff.h>

#include "plugins/vmm/protocol/messages.h"

namespace gantry::vmm {
namespace {

constexpr uint64_t kMilli = 1000;
/// No node has more; what is larger is the kernel's way to say "no limit".
constexpr uint64_t kMostMemory = uint64_t{1} << 50;
constexpr uint64_t kMostMilliCpus = uint64_t{kMaxCpus} * kMilli;
constexpr uint64_t kDefaultPeriod = 100'000;

/// What a guest has for taking CPUs, and for letting go of them.
constexpr std::chrono::milliseconds kCpuTime{2000};

Deadline Now() { return std::chrono::steady_clock::now(); }

uint64_t RoundedUp(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

uint32_t WholeCpus(uint64_t milli) {
  return static_cast<uint32_t>(std::min(RoundedUp(milli, kMilli), kMostMilliCpus) / kMilli);
}

/// Firecracker adds by larger blocks. Source: firecracker 1.17, docs/memory-hotplug.md.
uint64_t BlockOf(Vmm vmm) {
  constexpr uint64_t kFirecrackerBlock = 128 * kMiB;
  return vmm == Vmm::kFirecracker ? kFirecrackerBlock : kMemoryBlock;
}

bool AddsCpus(const VmmOptions& options) {
  return options.vmm == Vmm::kCloudHypervisor ||
         (options.vmm == Vmm::kQemu && options.machine == QemuMachine::kQ35);
}

/// From `start` on by whole blocks, not above `most`.
uint64_t MaxMemory(uint64_t start, uint64_t most, uint64_t block) {
  return most <= start ? start : start + (most - start) / block * block;
}

}  // namespace

ContainerSize SizeOf(int64_t cpu_quota, uint64_t cpu_period, int64_t memory_limit) {
  ContainerSize size;
  if (cpu_quota > 0) {
    const uint64_t period = cpu_period == 0 ? kDefaultPeriod : cpu_period;
    // Divided before it can be too large.
    const auto quota = static_cast<uint64_t>(cpu_quota);
    const uint64_t milli =
        quota / period >= kMaxCpus ? kMostMilliCpus : (quota * kMilli + period - 1) / period;
    size.milli_cpus = std::min(milli, kMostMilliCpus);
  }
  if (memory_limit > 0 && static_cast<uint64_t>(memory_limit) < kMostMemory) {
    size.memory_bytes = static_cast<uint64_t>(memory_limit);
  }
  return size;
}

NodeSize SizeOfNode() {
  NodeSize node;
  const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  node.cpus = static_cast<uint32_t>(std::clamp<long>(cpus, 1, kMaxCpus));
  struct sysinfo info{};
  if (::sysinfo(&info) == 0) {
    node.memory_bytes = uint64_t{info.totalram} * info.mem_unit;
  }
  return node;
}

MachineSize StartSize(const VmmOptions& options, const NodeSize& node, const ContainerSize& pod) {
  MachineSize size;
  size.cpus = options.cpus;
  size.memory_bytes = options.memory_mib * kMiB;
  const uint32_t most_cpus = options.max_cpus != 0 ? options.max_cpus : node.cpus;
  if (AddsCpus(options)) {
    size.max_cpus = std::max(size.cpus, most_cpus);
  } else {
    size.cpus = std::max(size.cpus, std::min(size.cpus + WholeCpus(pod.milli_cpus), most_cpus));
    size.max_cpus = size.cpus;
  }
  const uint64_t most_memory =
      options.max_memory_mib != 0 ? options.max_memory_mib * kMiB : node.memory_bytes;
  size.max_memory_bytes = MaxMemory(size.memory_bytes, most_memory, BlockOf(options.vmm));
  return size;
}

Sizes::Sizes(GuestCalls& guest, Hypervisor& hypervisor, const MachineSize& start)
    : guest_(guest),
      hypervisor_(hypervisor),
      start_(start),
      now_{.cpus = start.cpus, .memory_bytes = start.memory_bytes} {}

Sizes::Target Sizes::TargetOf(const Containers& containers) const {
  uint64_t milli = 0;
  uint64_t memory = 0;
  for (const auto& [name, size] : containers) {
    milli += size.milli_cpus;
    memory += size.memory_bytes;
  }
  const uint64_t block = BlockOf(hypervisor_.vmm());
  const uint64_t cpus = uint64_t{start_.cpus} + WholeCpus(milli);
  return {.cpus = static_cast<uint32_t>(std::min<uint64_t>(cpus, start_.max_cpus)),
          .memory_bytes =
              std::min(start_.memory_bytes + RoundedUp(memory, block), start_.max_memory_bytes)};
}

Status Sizes::AwaitMemory(uint64_t bytes, Deadline deadline) {
  Backoff backoff({.no_event = "virtio-mem: a guest takes memory when it wants, and the three VMMs "
                               "have no event of it in common",
                   .first = std::chrono::milliseconds(2),
                   .longest = std::chrono::milliseconds(100)});
  for (;;) {
    GANTRY_TRY(const VmSizes sizes, hypervisor_.GetSizes(deadline));
    const uint64_t has = sizes.memory_bytes + sizes.balloon_bytes;
    if (has >= bytes) {
      return {};
    }
    if (!backoff.Sleep(deadline)) {
      return Fail(Code::kResourceExhausted,
                  "give a VM memory: its guest has taken {} MiB of {} in time", has / kMiB,
                  bytes / kMiB);
    }
  }
}

// What shrinks does so as far as guest and VMM want: the rest serves the next container.
Status Sizes::Reach(const Target& target, Deadline deadline) {
  if (target.memory_bytes > now_.memory_bytes) {
    GANTRY_CHECK_OK(GrowMemory(target.memory_bytes, deadline));
  } else if (target.memory_bytes < now_.memory_bytes &&
             hypervisor_.SetMemory(target.memory_bytes, deadline)) {
    now_.memory_bytes = target.memory_bytes;
  }
  if (!takes_cpus_ || target.cpus == now_.cpus) {
    return {};
  }
  if (target.cpus > now_.cpus) {
    GANTRY_CHECK_OK(hypervisor_.SetCpus(target.cpus, deadline));
    now_.cpus = target.cpus;
  } else if (hypervisor_.SetCpus(target.cpus, std::min(deadline, Now() + kCpuTime))) {
    now_.cpus = target.cpus;
  }
  return {};
}

Status Sizes::GrowMemory(uint64_t bytes, Deadline deadline) {
  GANTRY_CHECK_OK(hypervisor_.SetMemory(bytes, deadline));
  if (Status taken = AwaitMemory(bytes, deadline); !taken) {
    IgnoreError(hypervisor_.SetMemory(now_.memory_bytes, deadline),
                "what is told is that the guest did not take it");
    return taken;
  }
  now_.memory_bytes = bytes;
  return {};
}

// Not every guest's kernel takes CPUs. One that did not once is not waited for again.
void Sizes::SwitchOn(Deadline deadline) {
  const protocol::Online online = {.cpus = takes_cpus_ ? now_.cpus : 0,
                                   .wait_ms = static_cast<uint32_t>(kCpuTime.count())};
  const auto switched = guest_.Call(online, deadline);
  if (!switched && switched.error().code == Code::kDeadlineExceeded) {
    takes_cpus_ = false;
  }
}

Status Sizes::Set(const std::string& container, const ContainerSize& size, Deadline deadline) {
  const MutexLock lock(asking_);
  Containers after = containers_;
  after[container] = size;
  const Target before = now_;
  if (Status reached = Reach(TargetOf(after), deadline); !reached) {
    IgnoreError(Reach(before, deadline), "what is told is why it cannot grow");
    return reached;
  }
  containers_ = std::move(after);
  if (now_.cpus > before.cpus || now_.memory_bytes > before.memory_bytes) {
    SwitchOn(deadline);
  }
  return {};
}

void Sizes::Remove(const std::string& container, Deadline deadline) {
  const MutexLock lock(asking_);
  if (containers_.erase(container) != 0) {
    IgnoreError(Reach(TargetOf(containers_), deadline),
                "what the guest keeps serves the next container");
  }
}

void Sizes::Know(const std::string& container, const ContainerSize& size) {
  const MutexLock lock(asking_);
  containers_[container] = size;
  now_ = TargetOf(containers_);
}

}  // namespace gantry::vmm
