// SPDX-License-Identifier: Apache-2.0
//
// Who learns of which end. An end may come before anybody has asked for its process: it waits in
// `ends_` until somebody enters the process, or, for one with a name, until that is asked for.
// The keeper is told that an end is written down when the last holder lets go (`Release`), and
// not before, so that the next engine is told of it again. What the snapshot named and nobody has
// claimed when all is recovered is let go as well (`ReleaseUnclaimed`).
#include "core/keeper_client/host_processes.h"

#include <cerrno>
#include <csignal>
#include <utility>

#include <gantry/toolkit/process/pidfd.h>

namespace gantry::keeper_client {
namespace {

/// One that has ended is there until the keeper has collected it. One that was no child of the
/// keeper's may have gone unseen: then the keeper has to be asked.
bool MayBeThere(const ProcessId& process) { return kill(process.pid, 0) == 0 || errno != ESRCH; }

}  // namespace

Status WatchedProcess::Signal(int signal) {
  if (Ended()) {
    return Fail(Code::kNotFound, "signal process {}: process already finished", id_.pid);
  }
  if (!pidfd_) {
    GANTRY_TRY(const UniqueFd now, spares_->Run([this] { return OpenPidfd(id_); }));
    return SendSignal(now.get(), signal);
  }
  return SendSignal(pidfd_.get(), signal);
}

std::optional<WaitStatus> WatchedProcess::Ended() const {
  const MutexLock lock(mutex_);
  return ended_;
}

Result<WaitStatus> WatchedProcess::Wait(std::chrono::milliseconds limit) {
  MutexLock lock(mutex_);
  changed_.wait_for(lock.native(), limit,
                    [this]() GANTRY_REQUIRES(mutex_) { return ended_.has_value(); });
  if (!ended_) {
    return Fail(Code::kDeadlineExceeded, "wait for process {}: still running after {} ms", id_.pid,
                limit.count());
  }
  return *ended_;
}

void WatchedProcess::OnEnd(std::function<void(WaitStatus)> then) {
  if (const std::optional<WaitStatus> ended = Ended()) {
    then(*ended);
    return;
  }
  then_ = std::move(then);
}

void WatchedProcess::End(WaitStatus status) {
  {
    const MutexLock lock(mutex_);
    if (ended_) {
      return;
    }
    ended_ = status;
  }
  changed_.notify_all();
  if (auto then = std::exchange(then_, nullptr)) {
    then(status);
  }
}

WatchedProcessPtr HostProcesses::Enter(ProcessId id, UniqueFd pidfd) {
  loop_.AssertLoopThread();
  WatchedProcessPtr process = FindHeld(id);
  if (!process) {
    process =
        WatchedProcessPtr(std::make_unique<WatchedProcess>(id, std::move(pidfd), spares_).release(),
                          [this](WatchedProcess* last) {
                            const std::unique_ptr<WatchedProcess> owned(last);
                            if (owned->IsBoundBy(nullptr)) {
                              loop_.Post([this, gone = owned->id()] { ReleaseUnheld(gone); });
                            }
                          });
    const MutexLock lock(mutex_);
    processes_[id] = process;
  }
  watched_.erase(id);
  unclaimed_.erase(id);
  if (auto end = ends_.extract(id)) {
    RememberNames(id, end.mapped());
    process->End(end.mapped());
  }
  return process;
}

WatchedProcessPtr HostProcesses::FindHeld(const ProcessId& process) const {
  const MutexLock lock(mutex_);
  const auto found = processes_.find(process);
  return found == processes_.end() ? nullptr : found->second.lock();
}

async::Task<Result<WatchedProcessPtr>> HostProcesses::Spawn(SpawnRequest request,
                                                            std::string group) {
  std::string name = request.tag;
  GANTRY_CO_TRY(SpawnedProcess spawned, co_await link_.Spawn(std::move(request), std::move(group)));
  if (!name.empty()) {
    names_[spawned.id] = std::move(name);
  }
  co_return Enter(spawned.id, std::move(spawned.pidfd));
}

async::Task<Result<WatchedProcessPtr>> HostProcesses::Adopt(HostPid pid, uint64_t start_time,
                                                            std::string name) {
  if (!name.empty()) {
    GANTRY_CO_TRY(const uint64_t found, co_await link_.Adopt(pid, start_time, name));
    const ProcessId id{pid.value, found};
    names_[id] = std::move(name);
    co_return Enter(id, UniqueFd());
  }
  const ProcessId wanted{pid.value, start_time};
  if (WatchedProcessPtr held = FindHeld(wanted)) {
    co_return held;
  }
  if (ends_.contains(wanted) || (watched_.contains(wanted) && MayBeThere(wanted))) {
    co_return Enter(wanted, UniqueFd());
  }
  GANTRY_CO_TRY(const uint64_t found, co_await link_.Adopt(pid, start_time));
  co_return Enter({pid.value, found}, UniqueFd());
}

WatchedProcessPtr HostProcesses::FindSpawned(std::string_view name) {
  loop_.AssertLoopThread();
  const auto found = named_.find(name);
  if (found == named_.end()) {
    return FindEnded(name);
  }
  const ProcessId id = found->second;
  named_.erase(found);
  Result<UniqueFd> pidfd = OpenPidfd(id);
  return Enter(id, pidfd ? std::move(*pidfd) : UniqueFd());
}

WatchedProcessPtr HostProcesses::FindEnded(std::string_view name) {
  const auto found = ended_names_.find(name);
  if (found == ended_names_.end()) {
    return nullptr;
  }
  const auto [id, status] = found->second;
  ended_names_.erase(found);
  WatchedProcessPtr process = Enter(id, UniqueFd());
  process->End(status);
  return process;
}

std::vector<ProcessId> HostProcesses::SpawnedBelow(std::string_view prefix) const {
  loop_.AssertLoopThread();
  std::vector<ProcessId> found;
  for (const auto& [id, name] : names_) {
    if (name.starts_with(prefix)) {
      found.push_back(id);
    }
  }
  return found;
}

void HostProcesses::ReleaseUnheld(const ProcessId& process) {
  if (!FindHeld(process)) {
    Release(process);
  }
}

/// Who asks for its name from now on is told its end, also when nothing else knows it any more.
void HostProcesses::RememberNames(const ProcessId& process, WaitStatus status) {
  std::erase_if(named_, [&](const auto& one) {
    if (one.second == process) {
      ended_names_[one.first] = {process, status};
    }
    return one.second == process;
  });
}

void HostProcesses::ForgetEnded(const std::string& prefix) {
  loop_.AssertLoopThread();
  std::erase_if(ended_names_, [&](const auto& one) { return one.first.starts_with(prefix); });
  link_.ForgetEnded(prefix);
}

void HostProcesses::Release(const ProcessId& process) {
  loop_.AssertLoopThread();
  if (const auto end = ends_.find(process); end != ends_.end()) {
    RememberNames(process, end->second);
  }
  {
    const MutexLock lock(mutex_);
    processes_.erase(process);
  }
  ends_.erase(process);
  watched_.erase(process);
  unclaimed_.erase(process);
  names_.erase(process);
  // Of one that runs nobody would tell the end to who finds it by its name from now on.
  std::erase_if(named_, [&](const auto& one) { return one.second == process; });
  link_.AckExit(process);
}

void HostProcesses::ReleaseUnclaimed() {
  while (!unclaimed_.empty()) {
    Release(ProcessId(*unclaimed_.begin()));
  }
}

bool HostProcesses::IsUnacknowledged(const ProcessId& process) const {
  loop_.AssertLoopThread();
  if (ends_.contains(process)) {
    return true;
  }
  const auto held = FindHeld(process);
  return held && held->Ended();
}

void HostProcesses::OnExit(const link::Exit& exit) {
  loop_.AssertLoopThread();
  const ProcessId id{exit.pid, exit.start_time};
  const WaitStatus status{exit.wait_status, exit.exited_at_ns};
  if (const auto process = FindHeld(id)) {
    RememberNames(id, status);
    process->End(status);
    return;
  }
  watched_.erase(id);
  ends_[id] = status;
}

void HostProcesses::OnWatched(const link::Watched& watched) {
  loop_.AssertLoopThread();
  for (const link::ProcessRef& process : watched.processes) {
    watched_.insert({process.pid, process.start_time});
  }
}

void HostProcesses::OnSnapshotEnd() {
  loop_.AssertLoopThread();
  for (const auto& [id, status] : ends_) {
    unclaimed_.insert(id);
  }
  unclaimed_.insert(watched_.begin(), watched_.end());
  std::erase_if(unclaimed_, [this](const ProcessId& id) { return names_.contains(id); });
}

void HostProcesses::OnEndedNames(const link::EndedNames& ended) {
  for (const link::EndedName& one : ended.ended) {
    ended_names_[one.name] = {ProcessId{one.pid, one.start_time},
                              WaitStatus{one.wait_status, one.exited_at_ns}};
  }
}

void HostProcesses::OnNamedSpawn(const link::NamedSpawn& spawn) {
  loop_.AssertLoopThread();
  const ProcessId id{spawn.pid, spawn.start_time};
  named_[spawn.name] = id;
  names_[id] = spawn.name;
}

}  // namespace gantry::keeper_client
