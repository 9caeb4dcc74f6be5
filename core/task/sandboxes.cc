// SPDX-License-Identifier: Apache-2.0
//
// The sandboxes that containers stand in: made by the first container of a
// group, ended after its last.
#include <utility>

#include "core/log/log.h"
#include "core/os/ask.h"
#include "core/plugin/guard.h"
#include "core/task/service.h"

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
    return entry.sandbox->Start();
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
  auto entry = std::make_shared<SandboxEntry>();
  GANTRY_CO_TRY(entry->id, SandboxId::Parse(container->group->id));
  entry->backend_name = backend.name;
  entry->backend = backend.backend;
  entry->options_json = request.options_json;
  entry->keeper_of_blob = container->id.str();
  if (blob != nullptr) {
    entry->blob = *blob;
  }
  sandbox::ContextOptions options;
  options.backend = backend.name;
  options.ns = container->group->ns;
  options.id = entry->id;
  options.store_prefix = std::format("{}/sandbox", container->instance);
  options.counters = &parts_.counters;
  options.save = [&loop = parts_.services.loop, weak = std::weak_ptr(container),
                  sandbox = std::weak_ptr(entry)](std::string state) -> Status {
    auto write = os::Call(loop, [&]() -> std::function<Status()> {
      const auto owner = weak.lock();
      const auto self = sandbox.lock();
      if (!owner || !self || !owner->init) {
        return [] { return Status(Fail(Code::kNotFound, "the sandbox is not there any more")); };
      }
      self->blob = std::move(state);
      owner->sandbox = self;
      return owner->record.Writer(owner->record.Next(ToRecord(*owner)));
    });
    return write();
  };
  entry->context = std::make_unique<sandbox::Context>(parts_.services, std::move(options));
  request.id = entry->id;
  request.ns = container->group->ns;
  GANTRY_CO_CHECK_OK(
      co_await parts_.services.pool.Run([&]() -> Status { return Open(*entry, request, blob); }));
  sandboxes_[address] = entry;
  co_return entry;
}

os::Task<void> Service::LeaveSandbox(Container& container) {
  const std::shared_ptr<SandboxEntry> entry = std::exchange(container.sandbox, nullptr);
  if (!entry || --entry->containers > 0) {
    co_return;
  }
  const std::string address = container.group->address;
  if (const auto found = sandboxes_.find(address);
      found != sandboxes_.end() && found->second == entry) {
    sandboxes_.erase(found);
  }
  const Status ended = co_await parts_.services.pool.Run([entry]() -> Status {
    return plugin::GuardedCall(entry->backend_name, [&] { return entry->sandbox->Shutdown(); });
  });
  if (!ended) {
    LogError({{"id", entry->id.str()}}, "shut the sandbox down: {}", ended.error().message);
  }
  static_cast<sandbox::Context&>(*entry->context).DropAll();
}

}  // namespace gantry::task
