// SPDX-License-Identifier: Apache-2.0
#include "core/keeper/exits.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/pidfd.h>

#include "core/keeper/note.h"

namespace gantry::keeper {
namespace {

ProcessId IdOf(const link::Exit& exit) { return {exit.pid, exit.start_time}; }

link::Exit RecordOf(const os::ReapedProcess& reaped) {
  constexpr int64_t kMicros = 1'000'000;
  link::Exit exit;
  exit.pid = reaped.process.pid;
  exit.start_time = reaped.process.start_time;
  exit.wait_status = reaped.wait_status;
  exit.exited_at_ns = NowNs();
  exit.user_us = reaped.usage.ru_utime.tv_sec * kMicros + reaped.usage.ru_utime.tv_usec;
  exit.system_us = reaped.usage.ru_stime.tv_sec * kMicros + reaped.usage.ru_stime.tv_usec;
  exit.max_rss_kib = reaped.usage.ru_maxrss;
  return exit;
}

/// A child of this process, or one that will be when those between have ended.
bool IsDescendant(pid_t pid) {
  constexpr int kMostBetween = 64;
  for (int i = 0; i < kMostBetween && pid > 1; ++i) {
    pid = ParentOf({pid}).value_or(HostPid()).value;
    if (pid == getpid()) {
      return true;
    }
  }
  return false;
}

}  // namespace

void Exits::Keep(const link::Exit& exit) {
  if (kept_.size() >= kMaxKept) {
    Note("the exit of process {} was dropped: {} are not acknowledged", kept_.begin()->second.pid,
         kept_.size());
    order_of_.erase(IdOf(kept_.begin()->second));
    names_.erase(IdOf(kept_.begin()->second));
    kept_.erase(kept_.begin());
  }
  order_of_[IdOf(exit)] = next_order_;
  kept_.emplace(next_order_++, exit);
  on_exit_(exit);
}

void Exits::Watch(ProcessId process, const std::string& name) {
  watched_.insert(process);
  Name(process, name);
}

void Exits::Name(ProcessId process, const std::string& name) {
  if (!name.empty()) {
    names_[process] = name;
    ended_names_.Forget(name);
  }
}

Result<ProcessId> Exits::NewestOf(pid_t pid) const {
  // One that is none of ours has the pid of one that was.
  if (const auto alive = Identify({pid}); alive && IsDescendant(pid)) {
    return *alive;
  }
  // Pids are used again: either list may have the newer one.
  ProcessId newest;
  const auto kept = order_of_.upper_bound({pid, UINT64_MAX});
  if (kept != order_of_.begin() && std::prev(kept)->first.pid == pid) {
    newest = std::prev(kept)->first;
  }
  if (const uint64_t start = orphans_.NewestStart(pid); start > newest.start_time) {
    newest = {pid, start};
  }
  if (newest.pid == 0) {
    return Fail(Code::kNotFound, "adopt process {}: it is gone", pid);
  }
  return newest;
}

Result<ProcessId> Exits::Adopt(ProcessId process, const std::string& name) {
  GANTRY_TRY(process, Take(process));
  Name(process, name);
  return process;
}

Result<ProcessId> Exits::Take(ProcessId process) {
  if (process.start_time == 0) {
    GANTRY_TRY(process, NewestOf(process.pid));
  }
  if (order_of_.contains(process)) {
    return process;
  }
  if (const std::optional<link::Exit> exit = orphans_.Take(process)) {
    Keep(*exit);
    return process;
  }
  const auto start = StartTimeOf({process.pid});
  if (!start || *start != process.start_time) {
    return Fail(Code::kNotFound, "adopt process {}: it is gone", process.pid);
  }
  watched_.insert(process);
  return process;
}

void Exits::Acknowledge(ProcessId process) {
  watched_.erase(process);
  const auto name = names_.extract(process);
  const auto found = order_of_.find(process);
  if (found != order_of_.end()) {
    if (name) {
      ended_names_.Add(name.mapped(), kept_.at(found->second));
    }
    kept_.erase(found->second);
    order_of_.erase(found);
  }
}

void Exits::RecordFailedSpawn(ProcessId process) {
  constexpr int kNotExecuted = 127 << 8;
  if (watched_.erase(process) > 0) {
    Keep(link::Exit{process.pid, process.start_time, kNotExecuted, NowNs(), 0, 0, 0});
  }
}

std::optional<Exits::Ended> Exits::ReapChild() {
  constexpr size_t kMaxCgroupBytes = 16U << 10;
  Ended ended;
  siginfo_t info{};
  // Looked at before it is collected: where it was goes with that.
  if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
    ended.cgroups = ReadFile(Format("/proc/{}/cgroup", info.si_pid), kMaxCgroupBytes).value_or("");
  }
  const auto reaped = os::ReapNext();
  if (!reaped) {
    return std::nullopt;
  }
  const std::optional<os::ReapedProcess>& one = *reaped;
  if (!one) {
    return std::nullopt;
  }
  ended.process = *one;
  if (one->process.pid != info.si_pid) {
    ended.cgroups.clear();
  }
  return ended;
}

bool Exits::ReapSome() {
  for (size_t i = 0; i < kPerTurn; ++i) {
    std::optional<Ended> ended = source_();
    if (!ended) {
      return false;
    }
    const link::Exit exit = RecordOf(ended->process);
    on_reaped_(exit);
    if (watched_.erase(IdOf(exit)) > 0) {
      Keep(exit);
    } else {
      orphans_.Add(exit, ended->cgroups);
    }
  }
  return true;
}

std::optional<link::Exit> Exits::Find(ProcessId process) const {
  const auto order = order_of_.find(process);
  if (order != order_of_.end()) {
    return kept_.at(order->second);
  }
  return orphans_.Find(process);
}

state::Exits Exits::Save() const {
  state::Exits state;
  state.watched = Watched();
  for (const auto& [process, name] : names_) {
    state.named.push_back({{process.pid, process.start_time}, name});
  }
  state.ended_names = ended_names_.All();
  state.kept = Kept();
  state.orphans = orphans_.All();
  return state;
}

void Exits::Restore(const state::Exits& state) {
  for (const link::ProcessRef& process : state.watched) {
    watched_.insert({process.pid, process.start_time});
  }
  for (const state::Named& one : state.named) {
    names_[{one.process.pid, one.process.start_time}] = one.name;
  }
  for (const link::EndedName& one : state.ended_names) {
    ended_names_.Add(one.name,
                     {one.pid, one.start_time, one.wait_status, one.exited_at_ns, 0, 0, 0});
  }
  for (const link::Exit& exit : state.kept) {
    order_of_[IdOf(exit)] = next_order_;
    kept_.emplace(next_order_++, exit);
  }
  for (const link::Exit& exit : state.orphans) {
    orphans_.Add(exit, std::string_view());
  }
}

std::vector<link::ProcessRef> Exits::Watched() const {
  std::vector<link::ProcessRef> all;
  all.reserve(watched_.size());
  for (const ProcessId& process : watched_) {
    all.push_back({process.pid, process.start_time});
  }
  return all;
}

std::vector<link::Exit> Exits::Kept() const {
  std::vector<link::Exit> all;
  all.reserve(kept_.size());
  for (const auto& [order, exit] : kept_) {
    all.push_back(exit);
  }
  return all;
}

}  // namespace gantry::keeper
