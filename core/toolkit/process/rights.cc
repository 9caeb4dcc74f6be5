// SPDX-License-Identifier: Apache-2.0
#include <linux/capability.h>
#include <signal.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/rights.h>

namespace gantry {
namespace {

/// Whether hard limits can be raised. Source: capabilities(7), proc(5).
bool HasSysResource() {
  constexpr size_t kMaxStatus = 16384;
  constexpr std::string_view kLine = "\nCapEff:\t";
  const std::string status = ReadFile("/proc/self/status", kMaxStatus).value_or("");
  const size_t at = status.find(kLine);
  if (at == std::string::npos) {
    return false;
  }
  const uint64_t mask = std::strtoull(status.c_str() + at + kLine.size(), nullptr, 16);
  return ((mask >> CAP_SYS_RESOURCE) & 1) != 0;
}

}  // namespace

rlimit RaisedLimit(int resource, rlim_t wanted) {
  rlimit now{};
  if (!HasSysResource() && getrlimit(static_cast<__rlimit_resource>(resource), &now) == 0) {
    wanted = std::min(wanted, now.rlim_max);
  }
  return {wanted, wanted};
}

Status WriteOomScore(HostPid pid, int score) {
  return WriteExisting(Format("/proc/{}/oom_score_adj", pid.value), std::to_string(score));
}

Status EndProcess(HostProcess* process, std::chrono::milliseconds limit) {
  if (process == nullptr || process->Ended()) {
    return {};
  }
  IgnoreError(process->Signal(SIGKILL), "it may have ended by itself");
  GANTRY_TRY([[maybe_unused]] const WaitStatus end, process->Wait(limit));
  return {};
}

}  // namespace gantry
