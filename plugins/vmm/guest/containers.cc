// SPDX-License-Identifier: Apache-2.0
//
// What can be asked of containers that are there.
#include "plugins/vmm/guest/containers.h"

#include <sys/ioctl.h>
#include <termios.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/oci/resources.h>
#include <gantry/toolkit/process/pidfd.h>

#include "plugins/vmm/guest/kill.h"
#include "plugins/vmm/guest/stats.h"

namespace gantry::vmm::guest {
namespace {

constexpr std::chrono::seconds kFreezeTime{10};
/// As many as a frame of the guest's has room for.
constexpr size_t kMaxPids = 32000;

Result<std::string> Nothing(const Status& status) {
  return status ? Result<std::string>(std::string())
                : Result<std::string>(std::unexpected(status.error()));
}

}  // namespace

Containers::Containers(Loop& loop, Workers& workers, Platform& platform,
                       cgroup::CgroupHierarchy hierarchy, std::string folder, Tellers tellers)
    : loop_(loop),
      workers_(workers),
      platform_(platform),
      hierarchy_(std::move(hierarchy)),
      folder_(std::move(folder)),
      tellers_(std::move(tellers)) {}

Result<Container*> Containers::Find(const std::string& id) {
  const auto found = containers_.find(id);
  if (found == containers_.end()) {
    return Fail(Code::kNotFound, "there is no container '{}'", id.substr(0, 128));
  }
  return found->second.get();
}

Result<Process*> Containers::FindProcess(const std::string& container, const std::string& exec) {
  GANTRY_TRY(Container* const in, Find(container));
  const auto found = in->processes.find(exec);
  if (found == in->processes.end()) {
    return Fail(Code::kNotFound, "there is no exec '{}' in container '{}'", exec.substr(0, 128),
                container);
  }
  return found->second.get();
}

void Containers::Freeze(const std::string& id, bool frozen, Reply reply) {
  const auto found = Find(id);
  if (!found) {
    reply(std::unexpected(found.error()));
    return;
  }
  workers_.Run(
      [cgroup = (*found)->cgroup, frozen] {
        return Nothing(frozen ? cgroup.Freeze(kFreezeTime) : cgroup.Thaw(kFreezeTime));
      },
      [this, id, frozen, reply = std::move(reply)](Result<std::string> done) {
        if (const auto still = Find(id); still && done) {
          (*still)->paused = frozen;
        }
        reply(std::move(done));
      });
}

void Containers::Update(const protocol::Update& request, Reply reply) {
  const auto found = Find(request.container);
  if (!found) {
    reply(std::unexpected(found.error()));
    return;
  }
  workers_.Run(
      [cgroup = (*found)->cgroup, text = request.resources_json]() -> Result<std::string> {
        GANTRY_TRY(const auto limits, oci::ParseResources(text));
        return Nothing(cgroup.Update(limits));
      },
      std::move(reply));
}

Status Containers::Signal(const protocol::Signal& request) {
  if (request.signal == 0 || request.signal >= NSIG) {
    return Fail(Code::kInvalidArgument, "signal '{}': {} is no signal", request.container,
                request.signal);
  }
  const int signal = static_cast<int>(request.signal);
  if (request.all) {
    GANTRY_TRY(Container* const container, Find(request.container));
    return signal == SIGKILL ? KillOnce(container->cgroup) : container->cgroup.Signal(signal);
  }
  GANTRY_TRY(Process* const process, FindProcess(request.container, request.exec));
  if (process->state == protocol::ProcessState::kExited || !process->pidfd) {
    return Fail(Code::kNotFound, "signal '{}{}{}': it has ended", request.container,
                request.exec.empty() ? "" : "/", request.exec);
  }
  return SendSignal(process->pidfd.get(), signal);
}

Status Containers::Resize(const protocol::Resize& request) {
  GANTRY_TRY(Process* const process, FindProcess(request.container, request.exec));
  if (!process->console) {
    return Fail(Code::kFailedPrecondition, "resize '{}': it has no terminal", request.container);
  }
  winsize size{};
  size.ws_col = static_cast<uint16_t>(std::min<uint32_t>(request.width, UINT16_MAX));
  size.ws_row = static_cast<uint16_t>(std::min<uint32_t>(request.height, UINT16_MAX));
  if (::ioctl(process->console.get(), TIOCSWINSZ, &size) != 0) {
    return FailErrno(errno, "resize '{}'", request.container);
  }
  return {};
}

Result<protocol::StatsAnswer> Containers::Stats(const protocol::Stats& request) {
  GANTRY_TRY(Container* const container, Find(request.container));
  GANTRY_TRY(protocol::StatsAnswer stats, ReadStats(container->cgroup));
  LookAtMemory(*container);
  stats.oom_kills = container->oom_kills;
  return stats;
}

Result<protocol::PidsAnswer> Containers::Pids(const protocol::Pids& request) {
  GANTRY_TRY(Container* const container, Find(request.container));
  GANTRY_TRY(std::vector<pid_t> pids, container->cgroup.Procs());
  pids.resize(std::min(pids.size(), kMaxPids));
  protocol::PidsAnswer answer;
  for (const pid_t pid : pids) {
    protocol::PidInfo& info = answer.pids.emplace_back();
    info.pid = pid;
    for (const auto& [exec, process] : container->processes) {
      if (process->pid == pid && process->state != protocol::ProcessState::kExited) {
        info.exec = exec;
      }
    }
  }
  return answer;
}

protocol::ListAnswer Containers::List() const {
  protocol::ListAnswer answer;
  for (const auto& [id, container] : containers_) {
    protocol::ContainerReport& report = answer.containers.emplace_back();
    report.container = id;
    report.oom_kills = container->oom_kills;
    report.paused = container->paused;
    for (const auto& [exec, process] : container->processes) {
      report.processes.push_back({.exec = exec,
                                  .pid = process->pid,
                                  .state = static_cast<uint32_t>(process->state),
                                  .status = process->status,
                                  .exited_at_ns = process->exited_at_ns});
    }
  }
  return answer;
}

}  // namespace gantry::vmm::guest
