// SPDX-License-Identifier: Apache-2.0
//
// The sandboxes that containers stand in: made by the first container of a
// group, ended after its last.
#include <csignal>
#include <utility>

#include <gantry/format.h>

#include "core/log/log.h"
#include "core/os/ask.h"
#include "core/plugin/guard.h"
#include "core/task/service.h"
#include "core/task/stdio_host.h"

namespace gantry::task {
namespace {

/// Makes and starts a sandbox, or takes one up again (`blob`). Thread: workers.
Status Open(SandboxEntry& entry, const SandboxRequest& request, const std::string* blob) {
  return plugin::GuardedCall(entry.backend_name, [&]() -> Status {
    if (blob != nullptr) {
      GANTRY_TRY(entry.sandbox, entry.backend->RecoverSandbox(request, *entry.context, *blob));
      return {};
    }
    GANTRY_TRY(entry.sandbox, entry.backend->CreateSandbox(request, *entry.context));
    Status started = entry.sandbox->Start();
    if (!started) {
      IgnoreError(entry.sandbox->Shutdown(), "the start's error says more");
    }
    return started;
  });
}

}  // namespace

os::Task<Result<std::shared_ptr<SandboxEntry>>> Service::OpenSandbox(ContainerPtr container,
                                                                     SandboxRequest request,
                                                                     std::string backend_name,
                                                                     const std::string* blob) {
  const std::string address = container->group->address;
  std::shared_ptr<os::Slot>& slot = sandbox_slots_[address];
  if (!slot) {
    slot = std::make_shared<os::Slot>();
  }
  const auto held_slot = slot;
  const os::Slot::Hold hold = co_await held_slot->Acquire();
  if (const auto found = sandboxes_.find(address); found != sandboxes_.end()) {
    co_return found->second;
  }
  GANTRY_CO_TRY(const BackendRef backend,
                co_await parts_.services.pool.Run(
                    [&]() -> Result<BackendRef> { return parts_.find_backend(backend_name); }));
  GANTRY_CO_TRY(const std::shared_ptr<SandboxEntry> entry, MakeEntry(container, backend, blob));
  entry->options_json = request.options_json;
  request.id = entry->id;
  request.ns = container->group->ns;
  // What it saves while it comes up is in the container's record already.
  container->sandbox = entry;
  container->sandbox_prefix = entry->prefix;
  Status opened =
      co_await parts_.services.pool.Run([&]() -> Status { return Open(*entry, request, blob); });
  if (!opened) {
    container->sandbox = nullptr;
    if (blob == nullptr) {
      static_cast<sandbox::Context&>(*entry->context).DropAll();
    }
    co_return std::unexpected(std::move(opened).error());
  }
  sandboxes_[address] = entry;
  co_return entry;
}

/// A sandbox that is to be made for `container`, or (`blob`) taken up again.
Result<std::shared_ptr<SandboxEntry>> Service::MakeEntry(const ContainerPtr& container,
                                                         const BackendRef& backend,
                                                         const std::string* blob) {
  auto entry = std::make_shared<SandboxEntry>();
  GANTRY_TRY(entry->id, SandboxId::Parse(container->group->id));
  entry->backend_name = backend.name;
  entry->backend = backend.backend;
  entry->keeper_of_blob = container;
  entry->blob = blob == nullptr ? std::string() : *blob;
  // Numbers of instances never come again, so no sandbox finds another one's things.
  entry->prefix = blob == nullptr || container->sandbox_prefix.empty()
                      ? Format("{}/sandbox", container->instance)
                      : container->sandbox_prefix;
  sandbox::ContextOptions options;
  options.backend = backend.name;
  options.ns = container->group->ns;
  options.id = entry->id;
  options.store_prefix = entry->prefix;
  options.counters = &parts_.counters;
  options.save = [this, sandbox = std::weak_ptr(entry)](std::string state) -> Status {
    auto write = os::Call(parts_.services.loop, [&]() -> std::function<Status()> {
      const auto self = sandbox.lock();
      const auto owner = self ? self->keeper_of_blob.lock() : nullptr;
      if (!owner || !owner->init) {
        return [] { return Status(Fail(Code::kNotFound, "the sandbox is not there any more")); };
      }
      self->blob = std::move(state);
      return owner->record.Writer(owner->record.Next(ToRecord(*owner)));
    });
    return write();
  };
  entry->context = std::make_unique<sandbox::Context>(parts_.services, std::move(options));
  return entry;
}

void Service::JoinMembers(Container& container, std::shared_ptr<SandboxEntry> entry) {
  ++entry->containers;
  container.sandbox_prefix = entry->prefix;
  container.sandbox = std::move(entry);
  ProtectMembers(*container.sandbox);
}

/// Who ends the sandbox changes as containers come and go.
void Service::ProtectMembers(const SandboxEntry& entry) {
  for (const auto& [key, member] : containers_) {
    if (member->sandbox.get() == &entry && member->init) {
      Protect(*member);
    }
  }
}

/// With this container its sandbox ends: it is the pod's own, or the only one.
bool Service::EndsWithSandbox(const Container& container) const {
  return container.sandbox &&
         (container.id.str() == container.group->id || container.sandbox->containers <= 1);
}

/// No backend has the sandbox any more, and its containers count as ended: so do
/// its processes, and its descriptors go.
void Service::AbandonSandbox(const std::string& prefix) {
  if (prefix.empty()) {
    return;
  }
  const std::string below = prefix + "/";
  for (const os::ProcessId& process : parts_.services.processes.SpawnedBelow(below)) {
    if (const Result<UniqueFd> pidfd = os::OpenPidfd(process)) {
      IgnoreError(os::SendSignal(pidfd->get(), SIGKILL), "it has ended just now");
    }
    parts_.services.processes.Release(process);
  }
  for (const std::string& name : NamesBelow(stored_, below)) {
    parts_.services.link.Drop(below + name);
  }
}

/// The sandbox's state is in the record of one of its containers. When that one
/// leaves, it goes to the one that a recovery would take up first.
os::Task<void> Service::HandOverBlob(const Container& from, SandboxEntry& entry) {
  if (entry.keeper_of_blob.lock().get() != &from) {
    co_return;
  }
  ContainerPtr next;
  for (const auto& [key, other] : containers_) {
    if (other->sandbox.get() == &entry && (!next || other->instance < next->instance)) {
      next = other;
    }
  }
  entry.keeper_of_blob = next;
  if (next) {
    IgnoreError(co_await Save(*next), "a later save repeats it");
  }
}

os::Task<void> Service::LeaveSandbox(Container& container) {
  const std::shared_ptr<SandboxEntry> entry = std::exchange(container.sandbox, nullptr);
  if (!entry) {
    co_return;
  }
  if (--entry->containers > 0) {
    co_await HandOverBlob(container, *entry);
    ProtectMembers(*entry);
    co_return;
  }
  const std::string address = container.group->address;
  if (const auto found = sandboxes_.find(address);
      found != sandboxes_.end() && found->second == entry) {
    sandboxes_.erase(found);
  }
  const Status ended = co_await parts_.services.pool.Run([entry]() -> Status {
    Status status =
        plugin::GuardedCall(entry->backend_name, [&] { return entry->sandbox->Shutdown(); });
    entry->sandbox.reset();
    return status;
  });
  if (!ended) {
    LogError({{"id", entry->id.str()}}, "shut the sandbox down: {}", ended.error().message);
  }
  static_cast<sandbox::Context&>(*entry->context).DropAll();
}

}  // namespace gantry::task
