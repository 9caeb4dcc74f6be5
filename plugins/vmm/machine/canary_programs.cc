// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/machine/canary_programs.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include <gantry/deadline.h>
#include <gantry/toolkit/descriptors/pipe.h>

namespace gantry::vmm {
namespace {

/// A path of this process's is another one in the keeper's.
Status OpenOwn(const std::string& path, SpawnRequest& request) {
  if (!path.starts_with("/proc/self/")) {
    return {};
  }
  request.program = UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!request.program) {
    return FailErrno(errno, "open '{}'", path);
  }
  request.argv.front() = kCanaryTag;
  return {};
}

}  // namespace

Result<std::unique_ptr<CanaryPrograms>> CanaryPrograms::Make(SandboxContext& context) {
  UniqueFd stop(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop) {
    return FailErrno(errno, "prepare to ask programs");
  }
  return std::unique_ptr<CanaryPrograms>(new CanaryPrograms(context, std::move(stop)));
}

Result<std::shared_ptr<HostProcess>> CanaryPrograms::Start(const ProgramQuestion& question,
                                                           UniqueFd output) {
  SpawnRequest request;
  request.argv = {question.program};
  request.argv.insert(request.argv.end(), question.arguments.begin(), question.arguments.end());
  request.env = question.environment;
  GANTRY_CHECK_OK(OpenOwn(question.program, request));
  if (question.with_errors) {
    GANTRY_TRY(UniqueFd errors, output.Duplicate());
    request.fds.emplace_back(std::move(errors), STDERR_FILENO);
  }
  request.fds.emplace_back(std::move(output), STDOUT_FILENO);
  request.no_new_privs = true;
  request.capabilities = 0;
  request.new_namespaces = CLONE_NEWNET;
  request.rlimits.emplace_back(RLIMIT_CORE, rlimit{.rlim_cur = 0, .rlim_max = 0});
  request.tag = kCanaryTag;
  return context_.Spawn(std::move(request));
}

bool CanaryPrograms::Keep(std::shared_ptr<HostProcess> process) {
  const MutexLock lock(mutex_);
  running_ = std::move(process);
  return !stopped_;
}

Result<std::string> CanaryPrograms::Read(int pipe_end, const ProgramQuestion& question) const {
  const Deadline deadline = std::chrono::steady_clock::now() + question.limit;
  std::string text;
  std::array<char, 4096> buffer{};
  while (text.size() < question.max_bytes) {
    std::array<pollfd, 2> two = {{{.fd = pipe_end, .events = POLLIN, .revents = 0},
                                  {.fd = stop_.get(), .events = POLLIN, .revents = 0}}};
    const int ready = poll(two.data(), two.size(), PollTimeout(deadline));
    if (two[1].revents != 0) {
      return Fail(Code::kUnavailable, "ask '{}': the engine ends", question.program);
    }
    if (ready == 0) {
      break;
    }
    const ssize_t got = ready < 0 ? -1 : read(pipe_end, buffer.data(), buffer.size());
    if (got == 0 || (got < 0 && errno != EINTR)) {
      break;
    }
    text.append(buffer.data(), std::min(static_cast<size_t>(std::max<ssize_t>(got, 0)),
                                        question.max_bytes - text.size()));
  }
  return text;
}

Result<std::string> CanaryPrograms::Ask(const ProgramQuestion& question) {
  if (!Keep(nullptr)) {
    return Fail(Code::kUnavailable, "ask '{}': the engine ends", question.program);
  }
  GANTRY_TRY(auto ends, MakeBlockingPipe());
  GANTRY_TRY(const std::shared_ptr<HostProcess> process, Start(question, std::move(ends.second)));
  // Stopped meanwhile, it is for who has started it to kill it.
  Result<std::string> text = std::string();
  if (Keep(process)) {
    text = Read(ends.first.get(), question);
  } else {
    text = Fail(Code::kUnavailable, "ask '{}': the engine ends", question.program);
  }
  IgnoreError(process->Signal(SIGKILL), "it has ended by itself");
  Keep(nullptr);
  return text;
}

void CanaryPrograms::Stop() {
  const MutexLock lock(mutex_);
  stopped_ = true;
  const uint64_t one = 1;
  // Full means that it has been stopped. NOLINTNEXTLINE(bugprone-unused-return-value)
  [[maybe_unused]] const ssize_t written = write(stop_.get(), &one, sizeof(one));
  if (running_) {
    IgnoreError(running_->Signal(SIGKILL), "it has ended by itself");
  }
}

}  // namespace gantry::vmm
