// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/launch/child.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include <gantry/toolkit/process/rights.h>

#include "plugins/gvisor/spec/spec.h"

namespace gantry::gvisor {
namespace {

constexpr rlim_t kOpenFiles = 1 << 20;

}  // namespace

Status Isolate(const Spec& spec, bool network, SpawnRequest& request) {
  request.new_namespaces =
      CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | (network ? CLONE_NEWNET : 0);
  // runsc sees to them itself.
  request.mounts = MountPropagation::kUnchanged;
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
  return {{RLIMIT_MEMLOCK, RaisedLimit(RLIMIT_MEMLOCK, RLIM_INFINITY)},
          {RLIMIT_NOFILE, RaisedLimit(RLIMIT_NOFILE, kOpenFiles)}};
}

Status AddDebugLog(const LogFlags& logs, const LogOwner& owner, std::string_view command,
                   SpawnBuilder& child) {
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

}  // namespace gantry::gvisor
