// SPDX-License-Identifier: Apache-2.0
//
// Who opens a sandbox, who keeps its saved state, and who ends it.
#include "core/task/members.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include <gantry/backend.h>
#include <gantry/toolkit/files/files.h>

#include "core/async/worker_pool.h"
#include "core/backend/call_deadline.h"
#include "core/backend/context.h"
#include "core/backend/guard.h"
#include "core/config/config.h"
#include "core/link/messages.h"
#include "core/link/name_owner.h"
#include "core/link/record_peek.h"
#include "core/log/log.h"
#include "core/task/backend_calls.h"
#include "core/task/container.h"
#include "core/task/pods.h"
#include "core/task/records.h"
#include "core/task/requests.h"
#include "core/task/sandboxes.h"

namespace gantry::task {
namespace {

/// Makes and starts a sandbox, or takes one up again (`blob`). Thread: workers.
Status Open(SandboxEntry& entry, const SandboxRequest& request, const std::string* blob,
            Deadline deadline) {
  const backend::CallDeadline limit(deadline);
  GANTRY_TRY(entry.sandbox, backend::GuardedCall(entry.backend_name, [&] {
               return blob != nullptr
                          ? entry.backend->RecoverSandbox(request, *entry.context, *blob)
                          : entry.backend->CreateSandbox(request, *entry.context);
             }));
  if (blob != nullptr) {
    return {};
  }
  Status started = backend::GuardedCall(entry.backend_name, [&] { return entry.sandbox->Start(); });
  if (!started) {
    IgnoreError(backend::GuardedCall(entry.backend_name, [&] { return entry.sandbox->Shutdown(); }),
                "the start's error says more");
    entry.sandbox.reset();
  }
  return started;
}

std::string EntryOf(const Container& container, const SandboxEntry& pod) {
  return pod.members_folder + "/" + container.id.str();
}

/// Only in a bundle that is there. One that containerd has removed meanwhile, and with it perhaps
/// the folder of its namespace, would come back with rights that keep users of pods out.
Status MakeFolder(const std::string& folder) {
  std::error_code failed;
  std::filesystem::create_directory(folder, failed);
  if (!failed) {
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all, failed);
  }
  return failed ? Status(FailErrno(failed.value(), "make '{}'", folder)) : Status();
}

}  // namespace

/// Strongest first: its own options, the link that was executed for it alone, the
/// sandbox that it joins, what its group came with.
std::string Members::ChooseHandler(const Container& container, const std::string& asked,
                                   const std::string& asked_of_group) const {
  const Group& group = *container.group;
  const link::InstanceAdded* const own = instances_.Find(container.instance);
  const std::string by_link = own == nullptr ? "" : own->announce.handler;
  std::string handler = asked;
  if (handler.empty() && by_link != group.handler) {
    handler = by_link;
  }
  if (handler.empty()) {
    const SandboxEntryPtr sandbox = sandboxes_.Find(group.address);
    handler = sandbox ? sandbox->handler : asked_of_group;
  }
  if (handler.empty()) {
    handler = group.handler;
  }
  return handler.empty() ? parts_.config.default_handler : handler;
}

/// A sandbox is its backend's: another's container would be made by the wrong one.
Status Members::CheckHandler(const Container& container, const SandboxEntry& sandbox) {
  // An older engine's record may name none.
  if (sandbox.handler.empty() || container.handler == sandbox.handler) {
    return {};
  }
  return Fail(Code::kInvalidArgument,
              "create container '{}': it is for handler '{}', and sandbox '{}' is of handler '{}' "
              "(backend '{}')",
              container.id.str(), container.handler, sandbox.id.str(), sandbox.handler,
              sandbox.backend_name);
}

async::Task<Result<SandboxEntryPtr>> Members::PrepareSandbox(ContainerPtr container,
                                                             const std::string* blob) {
  NewSandbox wanted;
  wanted.group = container->group;
  wanted.handler = container->handler;
  wanted.backend_name = container->backend_name;
  wanted.options_json = container->options_json;
  wanted.prefix = blob == nullptr || container->sandbox_prefix.empty()
                      ? link::NameOwner::Sandbox(container->instance).Text()
                      : container->sandbox_prefix;
  wanted.blob = blob == nullptr ? std::string() : *blob;
  GANTRY_CO_TRY(const SandboxEntryPtr entry, co_await sandboxes_.Prepare(std::move(wanted)));
  entry->blob_owner = container;
  if (container->id.str() == container->group->id) {
    // Of a pod's own container: containerd says `delete` of it alone, too.
    entry->members_folder = container->bundle + "/" + link::kMembersFolder;
  }
  entry->keep_blob = [weak = std::weak_ptr(entry)]() -> std::function<Status()> {
    const SandboxEntryPtr self = weak.lock();
    const ContainerPtr owner = self ? self->blob_owner.lock() : nullptr;
    if (!owner || !owner->init) {
      return nullptr;
    }
    return owner->record.Writer(owner->record.Next(ToRecord(*owner)));
  };
  co_return entry;
}

async::Task<Result<SandboxEntryPtr>> Members::OpenSandbox(ContainerPtr container,
                                                          const std::string* blob,
                                                          std::function<void()> then) {
  const std::string address = container->group->address;
  const auto slot = sandboxes_.SlotOf(address);
  const async::Slot::Hold hold = co_await slot->Acquire();
  if (SandboxEntryPtr there = sandboxes_.Find(address)) {
    if (blob == nullptr) {
      GANTRY_CO_CHECK_OK(CheckHandler(*container, *there));
    }
    co_return there;
  }
  GANTRY_CO_TRY(const SandboxEntryPtr entry, co_await PrepareSandbox(container, blob));
  const SandboxRequest request = SandboxRequestOf(*entry, *container);
  // What it saves while it comes up is in the container's record already.
  containers_.SetSandbox(*container, entry);
  container->sandbox_prefix = entry->prefix;
  const Deadline deadline = DeadlineIn(parts_.config.timeouts.create);
  Status opened = co_await calls_.Run(
      BackendCalls::NameOf(*entry, blob == nullptr ? "open" : "recover", entry->id.str()), deadline,
      [&]() -> Status {
        GANTRY_CHECK_OK(Open(*entry, request, blob, deadline));
        if (then) {
          then();
        }
        return {};
      },
      blob == nullptr ? async::Refusable::kYes : async::Refusable::kNo);
  if (!opened) {
    containers_.SetSandbox(*container, nullptr);
    if (blob == nullptr) {
      entry->context->DropAll();
    }
    co_return std::unexpected(std::move(opened).error());
  }
  sandboxes_.Enter(address, entry);
  co_return entry;
}

void Members::JoinMembers(Container& container, SandboxEntryPtr entry) {
  ++entry->containers;
  container.sandbox_prefix = entry->prefix;
  containers_.SetSandbox(container, std::move(entry));
  const SandboxEntry& joined = *container.sandbox;
  // One that is being taken up is protected at the end of that; the first one of its sandbox
  // has been by then, as if it were the only one.
  if (container.ready.is_set() || (!joined.is_pod && joined.containers == 2)) {
    ProtectMembers(joined);
  }
}

/// For whoever has to end the pod when keeper and engine are gone.
async::Task<Status> Members::Enlist(const Container& container) {
  if (container.sandbox->members_folder.empty() || container.id.str() == container.group->id) {
    co_return Status();
  }
  co_return co_await parts_.services.pool.Run(
      [folder = container.sandbox->members_folder, path = EntryOf(container, *container.sandbox),
       peek = store::EncodePeek(ToRecord(container))]() -> Status {
        GANTRY_CHECK_OK(MakeFolder(folder));
        return ReplaceFile(path, peek, 0600);
      });
}

/// Who ends the sandbox changes as containers come and go.
void Members::ProtectMembers(const SandboxEntry& entry) {
  for (const ContainerPtr& member : containers_.MembersOf(entry)) {
    if (member->init) {
      records_.Protect(*member);
    }
  }
}

/// The sandbox's state is in the record of one of its containers. When that one
/// leaves, it goes to the one that a recovery would take up first.
async::Task<void> Members::HandOverBlob(const Container& from, SandboxEntry& entry) {
  if (entry.blob_owner.lock().get() != &from) {
    co_return;
  }
  ContainerPtr next;
  for (const ContainerPtr& other : containers_.MembersOf(entry)) {
    if (!next || other->instance < next->instance) {
      next = other;
    }
  }
  entry.blob_owner = next;
  if (next) {
    IgnoreError(co_await records_.Save(*next), "a later save repeats it");
  }
}

async::Task<void> Members::LeaveSandbox(Container& container) {
  const SandboxEntryPtr entry = container.sandbox;
  if (!entry) {
    co_return;
  }
  containers_.SetSandbox(container, nullptr);
  --entry->containers;
  if (!entry->members_folder.empty() && container.id.str() != container.group->id) {
    IgnoreError(co_await parts_.services.pool.Run(
                    [path = EntryOf(container, *entry)]() -> Status { return RemoveFile(path); }),
                "it goes with the pod's bundle");
  }
  if (entry->is_pod) {
    co_return;
  }
  if (entry->containers > 0) {
    co_await HandOverBlob(container, *entry);
    ProtectMembers(*entry);
    co_return;
  }
  if (!entry->members_folder.empty()) {
    IgnoreError(co_await parts_.services.pool.Run(
                    [folder = entry->members_folder]() -> Status { return RemoveTree(folder); }),
                "it goes with the pod's bundle");
  }
  if (const Status ended = co_await sandboxes_.Close(container.group->address, entry); !ended) {
    LogError({{"id", entry->id.str()}}, "shut the sandbox down: {}", ended.error().message);
  }
}

/// Ends what its sandbox has, where nobody has that any more.
void Members::AbandonSandbox(const Container& container) {
  std::set<std::string> used = containers_.PrefixesInUse(container);
  pods_.AddPrefixes(used);
  if (!used.contains(container.sandbox_prefix)) {
    sandboxes_.Abandon(container.sandbox_prefix);
  }
}

}  // namespace gantry::task
