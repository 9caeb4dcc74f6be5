// SPDX-License-Identifier: Apache-2.0
//
// How an entry is put together for a backend, where what it saves goes, and how what a backend
// has left behind is ended: by the prefix that all of it bears at the keeper.
#include "core/task/sandboxes.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include <gantry/backend.h>
#include <gantry/format.h>
#include <gantry/toolkit/process/pidfd.h>

#include "core/async/ask.h"
#include "core/async/loop.h"
#include "core/backend/context.h"
#include "core/backend/guard.h"
#include "core/backend/retired.h"
#include "core/config/config.h"
#include "core/keeper_client/host_processes.h"
#include "core/keeper_client/keeper_link.h"
#include "core/link/name_owner.h"
#include "core/log/log.h"
#include "core/task/backend_calls.h"
#include "core/task/backend_proxy.h"
#include "core/task/stdio_host.h"

namespace gantry::task {
namespace {

/// Keeps what the backend of `entry` saves. Thread: workers.
Status KeepBlob(async::Loop& loop, const std::weak_ptr<SandboxEntry>& entry, std::string blob) {
  const auto write = async::Call(loop, [&]() -> std::function<Status()> {
    const SandboxEntryPtr self = entry.lock();
    if (self) {
      self->blob = std::move(blob);
    }
    auto writer = self && self->keep_blob ? self->keep_blob() : nullptr;
    return writer ? writer : [] {
      return Status(Fail(Code::kNotFound, "the sandbox is not there any more"));
    };
  });
  return write();
}

}  // namespace

SandboxEntry::~SandboxEntry() {
  sandbox.reset();
  if (context) {
    context->End();
  }
  backend::Retire(std::move(context));
}

void Sandboxes::SetStored(std::vector<std::string> names) {
  stored_ = std::move(names);
  std::ranges::sort(stored_);
}

SandboxEntryPtr Sandboxes::Find(const std::string& address) const {
  const auto found = entries_.find(address);
  return found == entries_.end() ? nullptr : found->second;
}

std::shared_ptr<async::Slot> Sandboxes::SlotOf(const std::string& address) {
  std::shared_ptr<async::Slot>& slot = slots_[address];
  if (!slot) {
    slot = std::make_shared<async::Slot>();
  }
  return slot;
}

async::Task<Result<BackendRef>> Sandboxes::FindBackend(std::string name, const NewSandbox* wanted) {
  if (const auto known = backends_.find(name); known != backends_.end()) {
    const KnownBackend found = known->second;
    co_await found.attached.Wait();
    co_return found.backend;
  }
  BackendCalls::Name loading{.backend = name, .what = "load", .verb = "load " + name};
  if (wanted != nullptr) {
    loading.address = wanted->group->address;
    loading.what = Format("load for '{}'", wanted->group->id);
    loading.account = wanted->group->account;
  }
  GANTRY_CO_TRY(
      const BackendRef backend,
      co_await calls_.Run(std::move(loading), DeadlineIn(parts_.config.timeouts.create),
                          [&]() -> Result<BackendRef> { return parts_.find_backend(name); }));
  KnownBackend loaded{.backend = backend, .attached = {}};
  if (backends_.try_emplace(name, loaded).second) {
    co_await own_contexts_.Attach(backend);
    loaded.attached.Set();
  } else {
    // Somebody else has loaded it meanwhile.
    co_await backends_.at(name).attached.Wait();
  }
  co_return backend;
}

async::Task<Status> Sandboxes::Load(std::string backend) {
  GANTRY_CO_TRY([[maybe_unused]] const BackendRef loaded,
                co_await FindBackend(std::move(backend), nullptr));
  co_return Status();
}

async::Task<Result<SandboxEntryPtr>> Sandboxes::Prepare(NewSandbox wanted) {
  GANTRY_CO_TRY(const BackendRef backend, co_await FindBackend(wanted.backend_name, &wanted));
  auto entry = std::make_shared<SandboxEntry>();
  GANTRY_CO_TRY(entry->id, SandboxId::Parse(wanted.group->id));
  entry->handler = std::move(wanted.handler);
  entry->backend_name = backend.name;
  entry->address = wanted.group->address;
  entry->ns = wanted.group->ns.str();
  entry->account = wanted.group->account;
  entry->backend = backend.backend;
  entry->options_json = std::move(wanted.options_json);
  entry->prefix = std::move(wanted.prefix);
  entry->blob = std::move(wanted.blob);
  entry->is_pod = wanted.pod.has_value();
  backend::ContextOptions options;
  options.backend = backend.name;
  options.ns = wanted.group->ns;
  options.id = entry->id;
  options.owner = link::NameOwner::Read(entry->prefix);
  options.group = entry->address;
  options.counters = &parts_.counters;
  options.account = wanted.group->account;
  options.max_stored = parts_.config.limits.max_descriptors_per_sandbox;
  const std::string below = options.owner.Prefix();
  for (const std::string& name : NamesBelow(stored_, below)) {
    options.stored.insert(below + name);
  }
  options.pod = std::move(wanted.pod);
  options.save = [&loop = parts_.services.loop, weak = std::weak_ptr(entry)](
                     std::string blob) -> Status { return KeepBlob(loop, weak, std::move(blob)); };
  const backend::Services& all = parts_.services;
  const backend::Services services{all.loop, calls_.PoolOf(backend.name), all.link, all.processes,
                                   all.cgroups};
  entry->context = std::make_unique<backend::Context>(services, std::move(options));
  co_return entry;
}

void Sandboxes::Enter(const std::string& address, SandboxEntryPtr entry) {
  entries_[address] = std::move(entry);
}

async::Task<Status> Sandboxes::Close(const std::string& address, SandboxEntryPtr entry) {
  if (const auto found = entries_.find(address);
      found != entries_.end() && found->second == entry) {
    entries_.erase(found);
  }
  const Deadline deadline = DeadlineIn(parts_.config.timeouts.remove);
  Status ended = co_await proxy_.Shutdown(entry, deadline);
  EndForgotten(*entry);
  entry->context->DropAll();
  co_return ended;
}

/// Who spawns a process ends it before the sandbox does.
void Sandboxes::EndForgotten(const SandboxEntry& entry) {
  for (const ProcessId& process : entry.context->Running()) {
    LogError({{"backend", entry.backend_name}, {"id", entry.id.str()}},
             "backend '{}' left process {} of its sandbox behind: killed", entry.backend_name,
             process.pid);
    if (const Result<UniqueFd> pidfd = OpenPidfd(process)) {
      IgnoreError(SendSignal(pidfd->get(), SIGKILL), "it has ended just now");
    }
    parts_.services.processes.Release(process);
  }
}

void Sandboxes::Abandon(const std::string& prefix) {
  const std::string below = link::NameOwner::Read(prefix).Prefix();
  if (below.empty()) {
    return;
  }
  for (const ProcessId& process : parts_.services.processes.SpawnedBelow(below)) {
    if (const Result<UniqueFd> pidfd = OpenPidfd(process)) {
      IgnoreError(SendSignal(pidfd->get(), SIGKILL), "it has ended just now");
    }
    parts_.services.processes.Release(process);
  }
  for (const std::string& name : NamesBelow(stored_, below)) {
    parts_.services.link.Drop(below + name);
  }
  parts_.services.processes.ForgetEnded(below);
}

void Sandboxes::AbandonAllBut(const std::set<std::string>& used) {
  std::set<std::string> left;
  const auto add = [&left](std::string_view name) {
    const link::NameOwner owner = link::NameOwner::Read(name);
    if (owner.kind == link::NameOwner::Kind::kSandbox) {
      left.insert(owner.Text());
    }
  };
  std::ranges::for_each(stored_, add);
  for (const auto& [process, name] : parts_.services.processes.Spawned()) {
    add(name);
  }
  for (const std::string& prefix : left) {
    if (!used.contains(prefix)) {
      Abandon(prefix);
    }
  }
  own_contexts_.EndLeft();
}

}  // namespace gantry::task
