// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/launch/child.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

namespace gantry::gvisor {
namespace {

constexpr rlim_t kOpenFiles = 1 << 20;

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

/// As much as is wanted, or as may be: without the privilege a sentry works, too.
rlimit Raised(int resource, rlim_t wanted) {
  rlimit now{};
  if (!HasSysResource() && getrlimit(static_cast<__rlimit_resource>(resource), &now) == 0) {
    wanted = std::min(wanted, now.rlim_max);
  }
  return {wanted, wanted};
}

}  // namespace

int ChildPlan::Pass(UniqueFd fd) {
  const int number = kFirst + static_cast<int>(fds_.size());
  fds_.emplace_back(std::move(fd), number);
  return number;
}

void ChildPlan::AddFd(std::string_view flag, UniqueFd fd) {
  const int number = Pass(std::move(fd));
  arguments_.push_back(Format("--{}={}", flag, number));
}

Result<SpawnRequest> ChildPlan::Finish(std::string name, const UniqueFd& program) {
  SpawnRequest request;
  GANTRY_TRY(request.program, program.Duplicate());
  request.argv = std::move(arguments_);
  request.argv.insert(request.argv.begin(), std::move(name));
  request.fds = std::move(fds_);
  return request;
}

Status Isolate(const Spec& spec, bool network, SpawnRequest& request) {
  request.new_namespaces =
      CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | (network ? CLONE_NEWNET : 0);
  if (spec.userns_path.empty()) {
    request.new_namespaces |= CLONE_NEWUSER;
    request.uid_map = spec.uids;
    request.gid_map = spec.gids;
  } else {
    UniqueFd space(open(spec.userns_path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (!space) {
      return FailErrno(errno, "open the user namespace '{}'", spec.userns_path);
    }
    if (ioctl(space.get(), NS_GET_NSTYPE) != CLONE_NEWUSER) {
      return Fail(Code::kInvalidArgument, "open the user namespace '{}': it is none",
                  spec.userns_path);
    }
    request.namespaces.emplace_back(std::move(space), CLONE_NEWUSER);
  }
  request.uid = 0;
  request.gid = 0;
  request.rlimits = SentryLimits();
  return {};
}

std::vector<std::pair<int, rlimit>> SentryLimits() {
  return {{RLIMIT_MEMLOCK, Raised(RLIMIT_MEMLOCK, RLIM_INFINITY)},
          {RLIMIT_NOFILE, Raised(RLIMIT_NOFILE, kOpenFiles)}};
}

Status EndProcess(HostProcess* process, std::chrono::milliseconds limit) {
  if (process == nullptr || process->Ended()) {
    return {};
  }
  IgnoreError(process->Signal(SIGKILL), "it may have ended by itself");
  GANTRY_TRY([[maybe_unused]] const WaitStatus end, process->Wait(limit));
  return {};
}

Status AddDebugLog(const LogFlags& logs, const LogOwner& owner, std::string_view command,
                   ChildPlan& child) {
  if (!logs.Debugs(command)) {
    return {};
  }
  GANTRY_TRY(UniqueFd log,
             OpenLogFile("runsc_config.debug-log or log_path", logs.debug, owner, command));
  if (log) {
    child.AddFd("debug-log-fd", std::move(log));
  }
  return {};
}

std::string LogPath(const std::string& bundle, std::string_view name) {
  return Format("{}/{}.log", bundle, name);
}

Result<UniqueFd> OpenLog(const std::string& bundle, std::string_view name) {
  const std::string path = LogPath(bundle, name);
  constexpr mode_t kMode = 0600;
  UniqueFd log(
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW | O_CLOEXEC, kMode));
  if (!log) {
    return FailErrno(errno, "open the log '{}'", path);
  }
  return log;
}

Status RemoveLog(const std::string& bundle, std::string_view name) {
  return RemoveFile(LogPath(bundle, name));
}

}  // namespace gantry::gvisor
