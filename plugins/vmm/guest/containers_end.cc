// SPDX-License-Identifier: Apache-2.0
//
// From a process that has ended to nothing left of its container.
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/cgroup/counters.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/pidfd.h>

#include "plugins/vmm/guest/containers.h"
#include "plugins/vmm/guest/kill.h"

namespace gantry::vmm::guest {
namespace {

constexpr std::chrono::seconds kKillTime{10};
constexpr std::chrono::seconds kRemoveTime{5};
/// Of those that are nobody's yet.
constexpr size_t kMaxUnknown = 4096;

int64_t RealTime() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Result<std::string> RemoveAll(const cgroup::Cgroup& cgroup, const std::string& folder) {
  GANTRY_CHECK_OK(cgroup.Kill(kKillTime));
  GANTRY_CHECK_OK(cgroup.Remove(kRemoveTime));
  GANTRY_CHECK_OK(RemoveTree(folder));
  return std::string();
}

}  // namespace

// What makers have said is read first: so an end that is behind it finds its process.
void Containers::HearMakers() {
  std::vector<std::pair<std::string, std::string>> making;
  for (const auto& [id, container] : containers_) {
    for (const auto& [exec, process] : container->processes) {
      if (process->maker) {
        making.emplace_back(id, exec);
      }
    }
  }
  for (const auto& [id, exec] : making) {
    OnMaker(id, exec);
  }
}

void Containers::Collect() {
  if (makers_ > 0) {
    HearMakers();
  }
  for (;;) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, WNOHANG);
    if (pid <= 0) {
      break;
    }
    Ended(pid, status);
  }
  if (makers_ == 0) {
    unknown_.clear();
  }
  ForgetStreams();
}

void Containers::Ended(pid_t pid, int wait_status) {
  for (const auto& [id, container] : containers_) {
    for (const auto& [exec, process] : container->processes) {
      if (process->pid == pid && process->state != protocol::ProcessState::kExited) {
        Ended(*container, *process, wait_status);
        return;
      }
    }
  }
  if (makers_ > 0 && unknown_.size() < kMaxUnknown) {
    unknown_[pid] = wait_status;
  }
}

void Containers::Ended(Container& container, Process& process, int wait_status) {
  if (process.started) {
    process.ended_early = wait_status;  // The maker has not said yet whether it ran.
    return;
  }
  LookAtMemory(container);
  DropMaker(process);
  process.state = protocol::ProcessState::kExited;
  process.status = WIFSIGNALED(wait_status) ? 128U + static_cast<uint32_t>(WTERMSIG(wait_status))
                                            : static_cast<uint32_t>(WEXITSTATUS(wait_status));
  process.exited_at_ns = RealTime();
  if (process.exec.empty()) {
    // Without a pid namespace of its own others may live on.
    KillNow(container.cgroup);
  }
  if (!process.never_ran) {
    tellers_.exited({.container = container.id,
                     .exec = process.exec,
                     .status = process.status,
                     .exited_at_ns = process.exited_at_ns});
  }
  if (!process.deleted.empty()) {
    const std::vector<Reply> deleted = std::move(process.deleted);
    Linger(process);
    container.processes.erase(std::string(process.exec));
    for (const Reply& reply : deleted) {
      reply(std::string());
    }
  }
}

void Containers::LookAtMemory(Container& container) {
  const uint64_t kills = cgroup::OomKills(container.cgroup.Dirs());
  if (kills > container.oom_kills) {
    container.oom_kills = kills;
    tellers_.out_of_memory({.container = container.id, .kills = kills});
  }
}

void Containers::Delete(const protocol::Delete& request, Reply reply) {
  const auto container = Find(request.container);
  if (!container) {
    reply(std::string());
    return;
  }
  if (request.exec.empty()) {
    if ((*container)->deleting) {
      reply(Fail(Code::kAborted, "delete '{}': it is being deleted", request.container));
      return;
    }
    Unmake(request.container, std::move(reply));
    return;
  }
  const auto process = FindProcess(request.container, request.exec);
  if (!process) {
    reply(std::string());
    return;
  }
  DeleteExec(**container, **process, std::move(reply));
}

void Containers::DeleteExec(Container& container, Process& process, Reply reply) {
  if (process.state == protocol::ProcessState::kMaking) {
    // Its maker ends what it has made by the time that it finds nobody to tell.
    const auto gone = container.processes.extract(std::string(process.exec));
    TellDeleted(*gone.mapped());
    reply(std::string());
    return;
  }
  if (process.state == protocol::ProcessState::kExited) {
    Linger(process);
    container.processes.erase(std::string(process.exec));
    reply(std::string());
    return;
  }
  KillProcess(process.pidfd);
  process.deleted.push_back(std::move(reply));
}

// Its processes end by their cgroup; those that wait at a gate, too.
void Containers::Unmake(const std::string& id, Reply reply) {
  Container& container = *containers_.at(id);
  container.deleting = true;
  KillNow(container.cgroup);
  workers_.Run(
      [cgroup = container.cgroup, folder = container.folder] { return RemoveAll(cgroup, folder); },
      [this, id, reply = std::move(reply)](Result<std::string> done) {
        // Their ends are told before this is answered.
        Collect();
        const auto found = containers_.find(id);
        if (!done && found != containers_.end()) {
          found->second->deleting = false;
        } else if (found != containers_.end()) {
          const std::unique_ptr<Container> gone = std::move(found->second);
          containers_.erase(found);
          for (const auto& [exec, process] : gone->processes) {
            Linger(*process);
            TellDeleted(*process);
          }
        }
        reply(std::move(done));
      });
}

// Whoever still waits for something of it.
void Containers::TellDeleted(Process& process) {
  DropMaker(process);
  for (Reply* const reply : {&process.made, &process.started}) {
    if (const Reply waits = std::exchange(*reply, nullptr)) {
      waits(Fail(Code::kCanceled, "make and start it: it was deleted meanwhile"));
    }
  }
  for (const Reply& waits : process.deleted) {
    waits(std::string());
  }
}

void Containers::DropMaker(Process& process) {
  if (process.maker) {
    process.on_maker.Reset();
    process.maker.Drop();
    --makers_;
  }
}

void Containers::KillAll() {
  closed_ = true;
  for (const auto& [id, container] : containers_) {
    KillNow(container->cgroup);
  }
}

bool Containers::HasUnread() const {
  const auto waits = [](const auto& stream) { return stream->speaks() && !stream->done(); };
  return std::ranges::any_of(lingering_, waits) ||
         std::ranges::any_of(containers_, [&](const auto& container) {
           return std::ranges::any_of(container.second->processes, [&](const auto& process) {
             return std::ranges::any_of(process.second->streams, waits);
           });
         });
}

void Containers::Linger(Process& process) {
  for (std::unique_ptr<Stream>& stream : process.streams) {
    if (!stream->speaks() || stream->done()) {
      continue;
    }
    if (lingering_.size() >= kMostLingering) {
      lingering_.pop_front();
    }
    lingering_.push_back(std::move(stream));
  }
  process.streams.clear();
}

void Containers::ForgetStreams() {
  std::erase_if(lingering_, [](const auto& stream) { return stream->done(); });
  for (const auto& [id, container] : containers_) {
    for (const auto& [exec, process] : container->processes) {
      std::erase_if(process->streams, [](const auto& stream) { return stream->done(); });
    }
  }
}

}  // namespace gantry::vmm::guest
