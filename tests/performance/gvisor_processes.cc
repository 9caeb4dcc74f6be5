// SPDX-License-Identifier: Apache-2.0
#include "tests/performance/gvisor_processes.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "tests/harness/host.h"
#include "tests/performance/figures.h"

namespace gantry::bench {
namespace {

constexpr const char* kSentry = "runsc-sandbox";
constexpr const char* kGofer = "runsc-gofer";

/// `roots` and what descends from them; of sentries and gofers only themselves.
std::vector<e2e::HostProcess> Family(const std::vector<pid_t>& roots) {
  std::vector<e2e::HostProcess> all = e2e::Processes([](const e2e::HostProcess&) { return true; });
  std::vector<e2e::HostProcess> family;
  for (const e2e::HostProcess& process : all) {
    if (std::ranges::contains(roots, process.pid)) {
      family.push_back(process);
    }
  }
  for (size_t i = 0; i < family.size(); ++i) {
    if (family[i].name == kSentry || family[i].name == kGofer) {
      continue;
    }
    const pid_t parent = family[i].pid;
    for (const e2e::HostProcess& process : all) {
      if (process.parent == parent && !std::ranges::contains(roots, process.pid)) {
        family.push_back(process);
      }
    }
  }
  return family;
}

std::vector<pid_t> Named(const std::vector<pid_t>& roots, const std::string& name) {
  std::vector<pid_t> pids;
  for (const e2e::HostProcess& process : Family(roots)) {
    if (process.name == name) {
      pids.push_back(process.pid);
    }
  }
  return pids;
}

}  // namespace

std::vector<pid_t> BesideSentries(const std::vector<pid_t>& roots) {
  std::vector<pid_t> pids;
  for (const e2e::HostProcess& process : Family(roots)) {
    if (process.name != kSentry && process.name != kGofer &&
        !std::ranges::contains(roots, process.pid)) {
      pids.push_back(process.pid);
    }
  }
  return pids;
}

std::vector<pid_t> Sentries(const std::vector<pid_t>& roots) { return Named(roots, kSentry); }

std::vector<pid_t> Gofers(const std::vector<pid_t>& roots) { return Named(roots, kGofer); }

bool AwaitIdle(const std::function<std::vector<pid_t>()>& pids, size_t count) {
  constexpr auto kLimit = std::chrono::seconds(5);
  constexpr auto kLook = std::chrono::milliseconds(50);
  // Of a processor's 50 ms: an idle sentry of 20240729 that has not been started takes 1.7.
  constexpr double kNextToNothing = 5;
  double before = 0;
  return e2e::Eventually(
      [&] {
        const std::vector<pid_t> there = pids();
        const double ran = CpuMilliseconds(there);
        const bool idle = there.size() == count && ran - before < kNextToNothing;
        before = ran;
        std::this_thread::sleep_for(kLook);
        return idle;
      },
      kLimit);
}

}  // namespace gantry::bench
