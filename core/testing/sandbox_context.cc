// SPDX-License-Identifier: Apache-2.0
#include <signal.h>

#include <algorithm>
#include <utility>

#include <gantry/testing/sandbox_context.h>
#include <gantry/toolkit/process/pidfd.h>

#include "core/testing/children.h"
#include "core/testing/limits.h"
#include "core/testing/spawn.h"
#include "core/testing/thread_watch.h"

namespace gantry {

FakeSandboxContext::FakeSandboxContext(Orphans orphans) : orphans_(orphans) {
  signal(SIGPIPE, SIG_IGN);
  if (orphans == Orphans::kAdopted) {
    fakes::Children::Of().AdoptOrphans();
  }
}

FakeSandboxContext::~FakeSandboxContext() = default;

void FakeSandboxContext::Keep(const std::shared_ptr<HostProcess>& process, std::string_view tag) {
  known_[process->pid().value] = process;
  if (!tag.empty()) {
    tagged_[std::string(tag)] = process;
  }
}

Result<std::shared_ptr<HostProcess>> FakeSandboxContext::Spawn(SpawnRequest request) {
  {
    const MutexLock lock(mutex_);
    asked.push_back({request.argv, request.env, request.cwd, request.tag,
                     fakes::FileBehind(request.program), request.cgroups});
  }
  if (on_spawn) {
    GANTRY_CHECK_OK(on_spawn(request));
  }
  GANTRY_TRY(std::shared_ptr<HostProcess> process, fakes::Spawn(request));
  const MutexLock lock(mutex_);
  spawned.push_back(process);
  Keep(process, request.tag);
  return process;
}

Result<std::shared_ptr<HostProcess>> FakeSandboxContext::Adopt(HostPid adopted) {
  return AdoptAs(adopted, "");
}

Result<std::shared_ptr<HostProcess>> FakeSandboxContext::AdoptAs(HostPid adopted,
                                                                 std::string_view tag) {
  const MutexLock lock(mutex_);
  if (const auto known = known_.find(adopted.value); known != known_.end()) {
    Keep(known->second, tag);
    return known->second;
  }
  if (orphans_ == Orphans::kLeft) {
    return Fail(Code::kNotFound,
                "adopt process {}: it was not spawned here, and orphans do not come here "
                "(Orphans::kAdopted)",
                adopted.value);
  }
  ProcessId process{.pid = adopted.value, .start_time = StartTimeOf(adopted).value_or(0)};
  auto pidfd = OpenPidfd(adopted);
  if (!pidfd && !fakes::Children::Of().WasCollected(adopted.value)) {
    return Fail(Code::kNotFound, "adopt process {}: there is none", adopted.value);
  }
  auto made = std::make_shared<FakeHostProcess>(process, std::move(pidfd).value_or(UniqueFd()));
  Keep(made, tag);
  return made;
}

Result<std::shared_ptr<HostProcess>> FakeSandboxContext::Recover(HostPid recovered,
                                                                 uint64_t start_time) {
  auto process = Adopt(recovered);
  if (process && (*process)->start_time() != start_time) {
    return Fail(Code::kNotFound, "recover process {}: it is another one now", recovered.value);
  }
  return process;
}

std::shared_ptr<HostProcess> FakeSandboxContext::FindSpawned(std::string_view tag) {
  const MutexLock lock(mutex_);
  const auto found = left_.find(tag);
  if (found == left_.end()) {
    return nullptr;
  }
  auto process = std::move(found->second);
  left_.erase(found);
  // The engine after this one finds it, too.
  tagged_[std::string(tag)] = process;
  return process;
}

Result<std::unique_ptr<Watch>> FakeSandboxContext::WatchReadable(int fd,
                                                                 std::function<void()> ready) {
  return fakes::ThreadWatch::Start(fd, std::move(ready));
}

Status FakeSandboxContext::Bind(std::shared_ptr<HostProcess> process) {
  const MutexLock lock(mutex_);
  if (bound && bound->pid() != process->pid()) {
    return Fail(Code::kFailedPrecondition, "bind process {}: process {} is bound",
                process->pid().value, bound->pid().value);
  }
  bound = std::move(process);
  return {};
}

void FakeSandboxContext::SetPid(HostPid stands_for_it) {
  const MutexLock lock(mutex_);
  pid = stands_for_it;
}

void FakeSandboxContext::Exited(ExitStatus status) {
  const MutexLock lock(mutex_);
  if (!exited) {
    exited = status;
  }
}

Status FakeSandboxContext::Store(std::string_view name, const UniqueFd& fd) {
  if (name.empty() || name.size() > fakes::kMaxName) {
    return Fail(Code::kInvalidArgument, "store '{}': its name has {} bytes, 1 to {} are allowed",
                name.substr(0, fakes::kMaxName), name.size(), fakes::kMaxName);
  }
  GANTRY_TRY(UniqueFd copy, fd.Duplicate());
  const MutexLock lock(mutex_);
  stored[std::string(name)] = std::move(copy);
  return {};
}

Result<UniqueFd> FakeSandboxContext::Take(std::string_view name) {
  const MutexLock lock(mutex_);
  const auto found = stored.find(name);
  if (found == stored.end()) {
    return Fail(Code::kNotFound, "take '{}': not stored", name);
  }
  return found->second.Duplicate();
}

void FakeSandboxContext::Drop(std::string_view name) {
  const MutexLock lock(mutex_);
  if (const auto found = stored.find(name); found != stored.end()) {
    stored.erase(found);
  }
}

Status FakeSandboxContext::Save(std::string text) {
  const MutexLock lock(mutex_);
  return fakes::KeepBlob(std::move(text), blob);
}

void FakeSandboxContext::Log(LogLevel, std::string_view message) {
  const MutexLock lock(mutex_);
  log.emplace_back(message);
  logged_.notify_all();
}

void FakeSandboxContext::Count(std::string_view name, uint64_t amount) {
  const MutexLock lock(mutex_);
  counts[std::string(name)] += amount;
}

void FakeSandboxContext::RestartEngine() {
  const MutexLock lock(mutex_);
  for (auto& [tag, process] : std::exchange(tagged_, {})) {
    left_[tag] = process;
  }
  bound = nullptr;
  pid = {};
  exited.reset();
}

void FakeSandboxContext::LeaveBehind(std::string tag, std::shared_ptr<HostProcess> process) {
  const MutexLock lock(mutex_);
  known_[process->pid().value] = process;
  left_[std::move(tag)] = std::move(process);
}

size_t FakeSandboxContext::Alive() const {
  const MutexLock lock(mutex_);
  return static_cast<size_t>(
      std::ranges::count_if(spawned, [](const auto& process) { return !process->Ended(); }));
}

std::shared_ptr<HostProcess> FakeSandboxContext::SpawnedUnder(std::string_view tag) const {
  const MutexLock lock(mutex_);
  const auto found = tagged_.find(tag);
  return found == tagged_.end() ? nullptr : found->second;
}

std::vector<std::string> FakeSandboxContext::Tags() const {
  const MutexLock lock(mutex_);
  std::vector<std::string> tags;
  tags.reserve(asked.size());
  for (const Asked& one : asked) {
    tags.push_back(one.tag);
  }
  return tags;
}

std::vector<std::string> FakeSandboxContext::StoredNames() const {
  const MutexLock lock(mutex_);
  std::vector<std::string> names;
  names.reserve(stored.size());
  for (const auto& [name, fd] : stored) {
    names.push_back(name);
  }
  return names;
}

bool FakeSandboxContext::WaitForLog(std::string_view words, std::chrono::milliseconds limit) {
  MutexLock lock(mutex_);
  return logged_.wait_for(lock.native(), limit, [&] {
    return std::ranges::any_of(log, [&](const std::string& line) { return line.contains(words); });
  });
}

}  // namespace gantry
