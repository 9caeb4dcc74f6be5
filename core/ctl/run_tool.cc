// SPDX-License-Identifier: Apache-2.0
#include "core/ctl/run_tool.h"

#include <sys/epoll.h>

#include <algorithm>
#include <csignal>

#include <gantry/host_process.h>
#include <gantry/toolkit/descriptors/memfd.h>
#include <gantry/toolkit/process/pidfd.h>

#include "core/os/poll.h"
#include "core/os/process.h"

namespace gantry::ctl {
namespace {

constexpr size_t kLongestLine = 200;

}  // namespace

Result<std::string> OutputOf(const std::vector<std::string>& argv, std::chrono::milliseconds limit,
                             size_t most_bytes) {
  GANTRY_TRY(const UniqueFd output, CreateMemfd("gantryctl-tool"));
  os::SpawnRequest request;
  request.argv = argv;
  request.env = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"};
  request.descriptors = {{output.get(), 1}, {output.get(), 2}};
  request.limits = {{RLIMIT_FSIZE, {most_bytes, most_bytes}}};
  request.parent_death_signal = SIGKILL;
  GANTRY_TRY(const os::SpawnResult child, os::SpawnProcess(request, limit));
  GANTRY_TRY(const uint32_t ended, os::Poll(child.pidfd.get(), EPOLLIN, limit));
  if (ended == 0) {
    IgnoreError(SendSignal(child.pidfd.get(), SIGKILL), "it may end this very moment");
    IgnoreError(os::Poll(child.pidfd.get(), EPOLLIN, limit), "a kill takes effect by itself");
  }
  GANTRY_TRY(const auto reaped, os::ReapNext());
  if (ended == 0) {
    return Fail(Code::kDeadlineExceeded, "run '{}': killed, it took too long", argv[0]);
  }
  GANTRY_TRY(std::string text, ReadAt(output.get(), 0, kMostToolOutput));
  if (!reaped || WaitStatus{reaped->wait_status}.code() != 0) {
    return Fail(Code::kFailedPrecondition, "run '{}': it failed with status {}: {}", argv[0],
                reaped ? WaitStatus{reaped->wait_status}.code() : 255,
                text.substr(0, std::min(text.find('\n'), kLongestLine)));
  }
  return text;
}

Result<std::string> FirstLineOf(const std::vector<std::string>& argv,
                                std::chrono::milliseconds limit) {
  GANTRY_TRY(const std::string text, OutputOf(argv, limit));
  return text.substr(0, std::min(text.find('\n'), kLongestLine));
}

}  // namespace gantry::ctl
