// SPDX-License-Identifier: Apache-2.0
#include "core/toolkit/container/limits.h"

#include <linux/ioprio.h>
#include <linux/sched/types.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include <gantry/format.h>

#include "core/toolkit/container/proc_files.h"

namespace gantry::container {
namespace {

Status SetScheduler(pid_t pid, const oci::Scheduler& scheduler) {
  sched_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.sched_policy = scheduler.policy;
  attributes.sched_flags = scheduler.flags;
  attributes.sched_nice = scheduler.nice;
  attributes.sched_priority = scheduler.priority;
  attributes.sched_runtime = scheduler.runtime;
  attributes.sched_deadline = scheduler.deadline;
  attributes.sched_period = scheduler.period;
  if (::syscall(SYS_sched_setattr, pid, &attributes, 0) != 0) {
    return FailErrno(errno, "set scheduling policy {} with nice {} and priority {}",
                     scheduler.policy, scheduler.nice, scheduler.priority);
  }
  return {};
}

Status SetIoPriority(pid_t pid, const oci::IoPriority& priority) {
  const int value = IOPRIO_PRIO_VALUE(priority.io_class, priority.priority);
  if (::syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, pid, value) != 0) {
    return FailErrno(errno, "set IO priority {} of class {}", priority.priority, priority.io_class);
  }
  return {};
}

}  // namespace

Status SetOomScore(int proc, const oci::ProcessSpec& process) {
  if (!process.oom_score_adj) {
    return {};
  }
  GANTRY_TRY(const std::string folder, OwnFolder(proc));
  return WriteProcFile(proc, folder + "/oom_score_adj", Format("{}", *process.oom_score_adj));
}

Resources LowerLimits(const oci::ProcessSpec& process) {
  Resources left = 0;
  for (const oci::Rlimit& limit : process.rlimits) {
    const rlimit value{limit.soft, limit.hard};
    if (::setrlimit(static_cast<__rlimit_resource>(limit.resource), &value) != 0) {
      left |= 1 << limit.resource;
    }
  }
  return left;
}

Status SetLimits(pid_t pid, const oci::ProcessSpec& process, Resources left) {
  if (process.scheduler) {
    GANTRY_CHECK_OK(SetScheduler(pid, *process.scheduler));
  }
  if (process.io_priority) {
    GANTRY_CHECK_OK(SetIoPriority(pid, *process.io_priority));
  }
  for (const oci::Rlimit& limit : process.rlimits) {
    const rlimit value{limit.soft, limit.hard};
    if ((left >> limit.resource & 1) != 0 &&
        ::prlimit(pid, static_cast<__rlimit_resource>(limit.resource), &value, nullptr) != 0) {
      return FailErrno(errno, "set resource limit {} to {}:{}", limit.resource, limit.soft,
                       limit.hard);
    }
  }
  return {};
}

}  // namespace gantry::container
