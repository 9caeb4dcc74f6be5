// SPDX-License-Identifier: Apache-2.0
#include "core/task/unbound.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <vector>

#include "core/backend/context.h"
#include "core/task/sandboxes.h"

namespace gantry::task {

uint64_t TicksNow() {
  constexpr uint64_t kNsPerSecond = 1'000'000'000;
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  const auto ns =
      static_cast<uint64_t>(now.tv_sec) * kNsPerSecond + static_cast<uint64_t>(now.tv_nsec);
  return ns / (kNsPerSecond / static_cast<uint64_t>(sysconf(_SC_CLK_TCK)));
}

Status CheckBound(const SandboxEntry& sandbox, uint64_t since, const TaskProcess& process,
                  std::string_view call) {
  if (process.host || process.pid != 0 || process.life.has_end()) {
    return {};
  }
  const std::vector<ProcessId> now = sandbox.context->Running();
  const auto spawned =
      std::ranges::find_if(now, [&](const ProcessId& one) { return one.start_time >= since; });
  if (spawned == now.end()) {
    return {};
  }
  return Fail(Code::kInternal,
              "{}: backend '{}' has spawned process {} and does not say that it is the {}: call "
              "ProcessContext::Bind with it, or, where the {} is no process of the host, SetPid",
              call, sandbox.backend_name, spawned->pid, process.is_init() ? "init" : "exec",
              process.is_init() ? "init" : "exec");
}

}  // namespace gantry::task
