// SPDX-License-Identifier: Apache-2.0
//
// `PluginHost::Probe`: a look at a plugin from a safe distance.
#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/pipe.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/process/pidfd.h>

#include "core/backend/plugin_host.h"
#include "core/os/fifo.h"
#include "core/os/poll.h"
#include "core/os/process.h"
#include "core/os/spawn.h"
#include "core/os/splice.h"

namespace gantry::backend {

namespace {

using Clock = std::chrono::steady_clock;

/// What the probe may print.
constexpr size_t kMaxOutput = size_t{16} << 10;

/// All that comes before the end. Errors: kDeadlineExceeded.
Result<std::string> ReadOutput(int pipe, Clock::time_point deadline) {
  std::string text;
  while (text.size() < kMaxOutput) {
    GANTRY_TRY(const uint32_t ready, os::Poll(pipe, EPOLLIN, deadline - Clock::now()));
    if (ready == 0) {
      return Fail(Code::kDeadlineExceeded, "it did not end in time");
    }
    char buffer[1024];
    GANTRY_TRY(const Transfer got, os::ReadSome(pipe, buffer));
    if (got.end) {
      break;
    }
    text.append(buffer, got.bytes);
  }
  return text;
}

Result<siginfo_t> Await(const os::SpawnResult& child, Clock::time_point deadline) {
  GANTRY_TRY(const uint32_t ended, os::Poll(child.pidfd.get(), EPOLLIN, deadline - Clock::now()));
  if (ended == 0) {
    return Fail(Code::kDeadlineExceeded, "it did not end in time");
  }
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(child.process.pid), &info, WEXITED) < 0) {
    return FailErrno(errno, "wait for the probe");
  }
  return info;
}

void KillAndReap(const os::SpawnResult& child) {
  IgnoreError(SendSignal(child.pidfd.get(), SIGKILL), "it may have ended");
  siginfo_t info{};
  while (waitid(P_PID, static_cast<id_t>(child.process.pid), &info, WEXITED) < 0 &&
         errno == EINTR) {
  }
}

Result<os::SpawnResult> StartProbe(const std::string& program,
                                   const std::vector<std::string>& words, int output) {
  os::SpawnRequest request;
  request.argv = {program, "--probe-plugin"};
  request.argv.insert(request.argv.end(), words.begin(), words.end());
  request.descriptors = {{output, 1}};
  return os::SpawnProcess(request);
}

/// `words`: path, name, and what else the probe is told.
Result<std::string> RunInAnother(const std::string& program, const std::vector<std::string>& words,
                                 std::chrono::milliseconds limit) {
  const std::string& path = words[0];
  const Clock::time_point deadline = Clock::now() + limit;
  GANTRY_TRY(auto pipe, MakePipe());
  GANTRY_CHECK_OK(SetNonblocking(pipe.second.get(), false));
  GANTRY_TRY(const os::SpawnResult child, StartProbe(program, words, pipe.second.get()));
  pipe.second.reset();
  auto text = ReadOutput(pipe.first.get(), deadline);
  auto ended = text ? Await(child, deadline) : Result<siginfo_t>(std::unexpected(text.error()));
  if (!ended) {
    KillAndReap(child);
    return std::unexpected(std::move(ended).error().Within(Format("probe plugin '{}'", path)));
  }
  if (ended->si_code != CLD_EXITED) {
    return Fail(Code::kFailedPrecondition,
                "load plugin '{}': it crashes when it is loaded (signal {}): report it to its "
                "maker, or take backend '{}' out of the configuration",
                path, ended->si_status, words[1]);
  }
  // The last line; what the plugin's constructors print comes before it.
  while (text->ends_with('\n')) {
    text->pop_back();
  }
  text->erase(0, text->rfind('\n') + 1);
  if (ended->si_status != 0) {
    return std::unexpected(
        Error{static_cast<Code>(ended->si_status), 0, std::move(*text), std::string()});
  }
  return std::move(*text);
}

}  // namespace

Result<std::string> PluginHost::Probe(const std::string& program, const std::string& path,
                                      const std::string& name, std::chrono::milliseconds limit) {
  return RunInAnother(program, {path, name}, limit);
}

Result<std::string> PluginHost::ProbeLoad(const std::string& program, const std::string& path,
                                          const std::string& name, const std::string& options_json,
                                          std::chrono::milliseconds limit) {
  return RunInAnother(program, {path, name, options_json}, limit);
}

}  // namespace gantry::backend
