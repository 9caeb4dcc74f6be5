// SPDX-License-Identifier: Apache-2.0
//
// CPUs and memory that are added to a running VM. Memory is virtio-mem's: QEMU says how much it
// would like the guest to have, and the guest takes and gives as it can. What is in the balloon is
// QEMU's again, too, and the guest takes it back when it is short of memory.
#include <algorithm>
#include <utility>

#include <gantry/format.h>

#include "plugins/vmm/hypervisor/qemu/qemu_driver.h"

namespace gantry::vmm::qemu {
namespace {

constexpr const char* kMoreMemory = "/machine/peripheral/more-memory";

std::string CpuId(uint32_t number) { return Format("cpu-{}", number); }

/// It is a place for a CPU, and one is in it.
bool IsTaken(const Json& slot) { return slot.is_object() && slot.contains("qom-path"); }

Result<uint64_t> NumberIn(const Json& answer, const char* name, std::string_view command) {
  const auto found = answer.is_object() ? answer.find(name) : answer.end();
  if (!answer.is_object() || found == answer.end() || !found->is_number_unsigned()) {
    return Fail(Code::kDataLoss, "ask QEMU to '{}': its answer has no number '{}'", command, name);
  }
  return found->get<uint64_t>();
}

}  // namespace

Result<uint64_t> Driver::MoreMemory(const char* property, Deadline deadline) {
  if (config_.memory.max_bytes <= config_.memory.bytes) {
    return 0;
  }
  GANTRY_TRY(const Json value,
             qmp_.Execute("qom-get", {{"path", kMoreMemory}, {"property", property}}, deadline));
  return NumberIn(Json{{property, value}}, property, "qom-get");
}

Result<VmSizes> Driver::GetSizes(Deadline deadline) {
  GANTRY_TRY(const Json cpus, qmp_.Execute("query-cpus-fast", Json(), deadline));
  VmSizes sizes;
  sizes.cpus = static_cast<uint32_t>(cpus.is_array() ? cpus.size() : 0);
  GANTRY_TRY(const uint64_t more, MoreMemory("size", deadline));
  sizes.memory_bytes = config_.memory.bytes + more;
  if (config_.balloon) {
    GANTRY_TRY(const Json balloon, qmp_.Execute("query-balloon", Json(), deadline));
    // What the guest has left of what was there at boot: QEMU's balloon does not know of more.
    // Source: QEMU 10.0, hw/virtio/virtio-balloon.c, get_current_ram_size.
    GANTRY_TRY(const uint64_t left, NumberIn(balloon, "actual", "query-balloon"));
    sizes.balloon_bytes = config_.memory.bytes - std::min(config_.memory.bytes, left);
    sizes.memory_bytes -= sizes.balloon_bytes;
  }
  return sizes;
}

Status Driver::AddCpu(const Json& slot, uint32_t number, Deadline deadline) {
  const auto type = slot.find("type");
  const auto place = slot.find("props");
  if (type == slot.end() || place == slot.end() || !place->is_object()) {
    return Fail(Code::kDataLoss,
                "ask QEMU to 'query-hotpluggable-cpus': a place has neither type nor properties");
  }
  Json device = *place;
  device["driver"] = *type;
  device["id"] = CpuId(number);
  return Do("device_add", device, deadline);
}

Status Driver::SetCpus(uint32_t count, Deadline deadline) {
  if (!traits().cpus) {
    return Unsupported(Vmm::kQemu, "add CPUs to this VM",
                       options_.machine == QemuMachine::kMicrovm
                           ? "a microvm has no place for them; use the machine q35"
                           : "it was made with as many as it can have");
  }
  if (count < config_.cpus.boot || count > config_.cpus.max) {
    return Fail(Code::kInvalidArgument, "give a VM of QEMU {} CPUs: it can have {} to {}", count,
                config_.cpus.boot, config_.cpus.max);
  }
  GANTRY_TRY(const Json slots, qmp_.Execute("query-hotpluggable-cpus", Json(), deadline));
  auto have = static_cast<uint32_t>(std::ranges::count_if(slots, IsTaken));
  for (auto slot = slots.rbegin(); slot != slots.rend() && have < count; ++slot) {
    // QEMU lists those with the highest number first.
    if (slot->is_object() && !IsTaken(*slot)) {
      GANTRY_CHECK_OK(AddCpu(*slot, have, deadline));
      ++have;
    }
  }
  for (; have > count; --have) {
    GANTRY_CHECK_OK(UnplugCpu(CpuId(have - 1), deadline));
  }
  return {};
}

Status Driver::UnplugCpu(const std::string& id, Deadline deadline) {
  const auto is_it = [&id](const QmpEvent& event) {
    const auto device = event.data.find("device");
    return (event.name == "DEVICE_DELETED" || event.name == "DEVICE_UNPLUG_GUEST_ERROR") &&
           device != event.data.end() && *device == id;
  };
  qmp_.Forget(is_it);
  GANTRY_CHECK_OK(Do("device_del", {{"id", id}}, deadline));
  GANTRY_TRY(const QmpEvent event,
             qmp_.Await(Format("the guest's letting go of '{}'", id), is_it, deadline));
  if (event.name != "DEVICE_DELETED") {
    return Fail(Code::kFailedPrecondition,
                "take a CPU from a VM of QEMU: the guest does not let go of '{}'", id);
  }
  return {};
}

Status Driver::SetMemory(uint64_t bytes, Deadline deadline) {
  const Memory& memory = config_.memory;
  if (!traits().memory) {
    return Unsupported(Vmm::kQemu, "add memory to this VM",
                       "it was made with all that it can have");
  }
  if (bytes < memory.bytes || bytes > memory.max_bytes) {
    return Fail(Code::kInvalidArgument,
                "give a VM of QEMU {} bytes of memory: it can have {} to {}", bytes, memory.bytes,
                memory.max_bytes);
  }
  const uint64_t more = (bytes - memory.bytes + kMemoryBlock - 1) / kMemoryBlock * kMemoryBlock;
  return Do("qom-set", {{"path", kMoreMemory}, {"property", "requested-size"}, {"value", more}},
            deadline);
}

Status Driver::SetBalloon(uint64_t bytes, Deadline deadline) {
  if (!config_.balloon) {
    return Unsupported(Vmm::kQemu, "take memory from this VM", "it was made without a balloon");
  }
  const uint64_t all = config_.memory.bytes;
  if (bytes >= all) {
    return Fail(Code::kInvalidArgument, "take {} bytes from a VM of QEMU: it has {}", bytes, all);
  }
  // To QEMU it is what the guest keeps.
  return Do("balloon", {{"value", all - bytes}}, deadline);
}

}  // namespace gantry::vmm::qemu
