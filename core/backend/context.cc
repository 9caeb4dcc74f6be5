// SPDX-License-Identifier: Apache-2.0
#include "core/backend/context.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/process/pidfd.h>

#include "core/async/ask.h"
#include "core/async/loop.h"
#include "core/async/worker_pool.h"
#include "core/backend/call_processes.h"
#include "core/backend/check.h"
#include "core/backend/watches.h"
#include "core/keeper_client/host_processes.h"
#include "core/keeper_client/keeper_link.h"
#include "core/log/log.h"

namespace gantry::backend {
namespace {

constexpr size_t kMaxStoredName = 64;
constexpr size_t kMaxStoredAtOnce = 16;

using ProcessResult = Result<std::shared_ptr<HostProcess>>;

ProcessResult Upcast(Result<keeper_client::WatchedProcessPtr> process) {
  if (!process) {
    return std::unexpected(std::move(process).error());
  }
  return std::shared_ptr<HostProcess>(std::move(*process));
}

}  // namespace

void Counters::Add(std::string name, uint64_t amount) {
  const MutexLock lock(mutex_);
  values_[std::move(name)] += amount;
}

std::map<std::string, uint64_t> Counters::All() const {
  const MutexLock lock(mutex_);
  return values_;
}

Context::Context(const Services& services, ContextOptions options)
    : services_(services),
      options_(std::move(options)),
      account_(options_.account ? options_.account
                                : std::make_shared<async::Account>(options_.backend)) {
  *stored_ = options_.stored;
}

Status Context::CheckLive(std::string_view call) const {
  if (!ended_) {
    return {};
  }
  LogError({{"backend", options_.backend}, {"id", options_.id.str()}},
           "backend '{}' calls '{}' of a sandbox that it has shut down", options_.backend, call);
  return Fail(Code::kNotFound, "{}: sandbox '{}' is not there any more", call, options_.id.str());
}

async::Task<Result<keeper_client::WatchedProcessPtr>> Context::SpawnOnLoop(
    std::shared_ptr<SpawnRequest> request) {
  GANTRY_CO_TRY(keeper_client::WatchedProcessPtr process,
                co_await services_.processes.Spawn(std::move(*request), options_.group));
  if (Status live = CheckLive("Spawn"); !live) {
    // The sandbox ended meanwhile, and what it had left behind with it.
    IgnoreError(process->Signal(SIGKILL), "it has ended by itself");
    services_.processes.Release(process->id());
    co_return std::unexpected(std::move(live).error());
  }
  std::erase_if(spawned_, [this](const ProcessId& known) { return !IsRunning(known); });
  spawned_.push_back(process->id());
  co_return process;
}

bool Context::IsRunning(const ProcessId& process) const {
  return !services_.processes.IsUnacknowledged(process) && OpenPidfd(process).has_value();
}

std::vector<ProcessId> Context::Running() const {
  std::vector<ProcessId> running = spawned_;
  for (const ProcessId& process : services_.processes.SpawnedBelow(options_.owner.Prefix())) {
    if (!std::ranges::contains(running, process)) {
      running.push_back(process);
    }
  }
  std::erase_if(running, [this](const ProcessId& process) { return !IsRunning(process); });
  return running;
}

ProcessResult Context::Spawn(SpawnRequest request) {
  GANTRY_CHECK_OK(CheckLive("Spawn"));
  const std::shared_ptr<CallProcesses> call = CallProcesses::Current();
  if (call) {
    GANTRY_CHECK_OK(call->Check());
  }
  if (!request.tag.empty()) {
    request.tag = options_.owner.Name(request.tag);
  }
  // The request is handed over by pointer because a coroutine's function object
  // is kept, and may be moved, until it has run.
  auto kept = std::make_shared<SpawnRequest>(std::move(request));
  ProcessResult spawned =
      Upcast(async::Ask(services_.loop, [this, kept] { return SpawnOnLoop(kept); }));
  if (spawned && call) {
    call->Add({(*spawned)->pid().value, (*spawned)->start_time()});
  }
  return spawned;
}

ProcessResult Context::Adopt(HostPid pid) { return Recover(pid, 0); }

ProcessResult Context::AdoptAs(HostPid pid, std::string_view tag) {
  GANTRY_CHECK_OK(CheckLive("AdoptAs"));
  if (tag.empty()) {
    return Fail(Code::kInvalidArgument, "adopt process {}: an empty tag finds nothing", pid.value);
  }
  const std::string name = options_.owner.Name(tag);
  return Upcast(async::Ask(services_.loop,
                           [this, pid, name] { return services_.processes.Adopt(pid, 0, name); }));
}

ProcessResult Context::Recover(HostPid pid, uint64_t start_time) {
  GANTRY_CHECK_OK(CheckLive("Recover"));
  if (auto held = services_.processes.FindHeld({pid.value, start_time})) {
    return held;
  }
  return Upcast(async::Ask(services_.loop, [this, pid, start_time] {
    return services_.processes.Adopt(pid, start_time);
  }));
}

std::shared_ptr<HostProcess> Context::FindSpawned(std::string_view tag) {
  if (!CheckLive("FindSpawned")) {
    return nullptr;
  }
  const std::string name = options_.owner.Name(tag);
  return async::Call(services_.loop,
                     [this, name] { return services_.processes.FindSpawned(name); });
}

Status Context::Bind(std::shared_ptr<HostProcess> process) {
  GANTRY_CHECK_OK(CheckLive("Bind"));
  auto watched = std::dynamic_pointer_cast<keeper_client::WatchedProcess>(std::move(process));
  if (!watched) {
    return Fail(Code::kInvalidArgument, "bind sandbox '{}': not a process of the keeper's",
                options_.id.str());
  }
  if (!options_.pod) {
    return Fail(Code::kFailedPrecondition, "bind sandbox '{}': it is no pod of its own",
                options_.id.str());
  }
  return async::Call(services_.loop, [&] { return options_.pod->bound(std::move(watched)); });
}

void Context::SetPid(HostPid pid) {
  if (options_.pod && CheckLive("SetPid") && CheckPid(options_.backend, options_.id.str(), pid)) {
    async::Call(services_.loop, [&] { options_.pod->pid(pid); });
  }
}

void Context::Exited(ExitStatus status) {
  if (options_.pod && CheckLive("Exited")) {
    services_.loop.Post(
        [exited = options_.pod->exited,
         exit = CheckExit(options_.backend, options_.id.str(), status)] { exited(exit); });
  }
}

Result<std::unique_ptr<Watch>> Context::WatchReadable(int fd, std::function<void()> ready) {
  GANTRY_CHECK_OK(CheckLive("WatchReadable"));
  if (fd < 0 || !ready) {
    return Fail(Code::kInvalidArgument, "watch descriptor {}: no descriptor or no callback", fd);
  }
  const std::string& whose = options_.id.empty() ? options_.backend : options_.id.str();
  return WatchOnPool(services_.loop, services_.pool,
                     {options_.backend, account_, Format("watch of '{}'", whose)}, fd,
                     std::move(ready));
}

Result<std::string> Context::StoredName(std::string_view name) const {
  if (name.empty() || name.size() > kMaxStoredName) {
    return Fail(Code::kInvalidArgument, "store descriptor '{}': the name is not 1 to {} characters",
                name.substr(0, kMaxStoredName), kMaxStoredName);
  }
  return options_.owner.Name(Format("backend/{}", name));
}

Status Context::Store(std::string_view name, const UniqueFd& fd) {
  const NamedFd one{name, fd};
  return StoreAll({&one, 1});
}

Status Context::StoreAll(std::span<const NamedFd> all) {
  GANTRY_CHECK_OK(CheckLive("Store"));
  if (all.size() > kMaxStoredAtOnce) {
    return Fail(Code::kInvalidArgument, "store {} descriptors: {} at once are allowed", all.size(),
                kMaxStoredAtOnce);
  }
  auto kept = std::make_shared<std::vector<keeper_client::ToStore>>();
  for (const NamedFd& one : all) {
    GANTRY_TRY(std::string full, StoredName(one.name));
    GANTRY_TRY(UniqueFd copy, one.fd.Duplicate());
    kept->push_back({std::move(full), std::move(copy)});
  }
  return async::Ask(services_.loop, [this, kept] { return StoreOnLoop(kept); });
}

async::Task<Status> Context::StoreOnLoop(std::shared_ptr<std::vector<keeper_client::ToStore>> all) {
  for (const keeper_client::ToStore& one : *all) {
    if (stored_->size() >= options_.max_stored && !stored_->contains(one.name)) {
      co_return Fail(Code::kResourceExhausted,
                     "store descriptor '{}': {} of sandbox '{}' are stored "
                     "(limits.max_descriptors_per_sandbox)",
                     one.name, stored_->size(), options_.id.str());
    }
    stored_->insert(one.name);
  }
  co_return co_await services_.link.PutAll(std::move(*all));
}

Result<UniqueFd> Context::Take(std::string_view name) {
  GANTRY_CHECK_OK(CheckLive("Take"));
  GANTRY_TRY(const std::string full, StoredName(name));
  return async::Ask(services_.loop, [this, full] {
    stored_->insert(full);
    return services_.link.Take(full);
  });
}

void Context::Drop(std::string_view name) {
  if (const Result<std::string> full = StoredName(name); full && CheckLive("Drop")) {
    // Nobody waits for it: what is asked next is behind it in the loop's queue.
    services_.loop.Post([stored = stored_, &link = services_.link, name = *full] {
      stored->erase(name);
      link.Drop(name);
    });
  }
}

void Context::DropAll() {
  for (const std::string& name : std::exchange(*stored_, {})) {
    services_.link.Drop(name);
  }
  services_.processes.ForgetEnded(options_.owner.Prefix());
}

Status Context::Save(std::string blob) {
  GANTRY_CHECK_OK(CheckLive("Save"));
  if (blob.size() > kMaxSaved) {
    return Fail(Code::kInvalidArgument, "save the state of sandbox '{}': {} bytes, {} are allowed",
                options_.id.str(), blob.size(), kMaxSaved);
  }
  return options_.save(std::move(blob));
}

void Context::Log(LogLevel level, std::string_view message) {
  if (options_.id.empty()) {
    log::Log(level, {{"backend", options_.backend}}, "{}", message);
    return;
  }
  log::Log(level,
           {{"backend", options_.backend}, {"ns", options_.ns.str()}, {"id", options_.id.str()}},
           "{}", message);
}

void Context::Count(std::string_view name, uint64_t amount) {
  if (options_.counters != nullptr) {
    options_.counters->Add(Format("{}.{}", options_.backend, name), amount);
  }
}

}  // namespace gantry::backend
