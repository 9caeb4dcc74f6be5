// SPDX-License-Identifier: Apache-2.0
//
// Source: Linux, admin-guide/cputopology.rst; admin-guide/mm/memory-hotplug.rst.
#include "plugins/vmm/guest/online.h"

#include <sys/sysinfo.h>

#include <algorithm>
#include <chrono>

#include <gantry/format.h>
#include <gantry/number.h>
#include <gantry/toolkit/files/files.h>

#include "plugins/vmm/guest/devices.h"

namespace gantry::vmm::guest {
namespace {

constexpr uint32_t kMaxOnlineMs = 120'000;
constexpr const char* kSystem = "/sys/devices/system";

/// `cpu7` and `memory33` and not `cpufreq`.
bool IsNumbered(const std::string& name, std::string_view kind) {
  return name.starts_with(kind) && ParseNumber(std::string_view(name).substr(kind.size()));
}

bool Says(const std::string& file, std::string_view word) {
  const auto text = ReadFile(file, 64);
  return text && text->starts_with(word);
}

}  // namespace

Result<uint32_t> SwitchOn(const std::string& system) {
  GANTRY_TRY(const auto cpus, ListDirectory(system + "/cpu"));
  uint32_t on = 0;
  for (const std::string& name : cpus) {
    if (!IsNumbered(name, "cpu")) {
      continue;
    }
    // The first has no such file: it is always on.
    const std::string file = Format("{}/cpu/{}/online", system, name);
    if (Says(file, "0")) {
      GANTRY_CHECK_OK(WriteExisting(file, "1"));
    }
    ++on;
  }
  if (const auto blocks = ListDirectory(system + "/memory")) {
    for (const std::string& name : *blocks) {
      const std::string file = Format("{}/memory/{}/state", system, name);
      if (IsNumbered(name, "memory") && Says(file, "offline")) {
        GANTRY_CHECK_OK(WriteExisting(file, "online"));
      }
    }
  }
  return on;
}

Result<protocol::OnlineAnswer> BringOnline(const protocol::Online& request) {
  const Deadline deadline = std::chrono::steady_clock::now() +
                            std::chrono::milliseconds(std::min(request.wait_ms, kMaxOnlineMs));
  GANTRY_TRY(DeviceEvents events, DeviceEvents::Listen());
  for (;;) {
    GANTRY_TRY(const uint32_t cpus, SwitchOn(kSystem));
    if (cpus >= request.cpus) {
      struct sysinfo info{};
      ::sysinfo(&info);
      return protocol::OnlineAnswer{.cpus = cpus,
                                    .memory_bytes = uint64_t{info.totalram} * info.mem_unit};
    }
    if (!events.Await(deadline)) {
      return Fail(Code::kDeadlineExceeded, "switch CPUs on: there are {} of {}", cpus,
                  request.cpus);
    }
  }
}

}  // namespace gantry::vmm::guest
