// SPDX-License-Identifier: Apache-2.0
#include "core/door/sandboxes.h"

#include <cerrno>
#include <utility>

namespace gantry::door {
namespace {

constexpr char kSandboxService[] = "containerd.runtime.sandbox.v1.Sandbox";
constexpr std::chrono::seconds kReachLimit(10);

}  // namespace

async::Task<Result<Sandboxes::EntryPtr>> Sandboxes::Open(SandboxKey key) {
  EntryPtr& known = entries_[key];
  if (!known) {
    known = std::make_shared<Entry>();
  }
  const EntryPtr entry = known;
  const async::Slot::Hold hold = co_await entry->slot.Acquire();
  if (entry->client && !entry->client->closed()) {
    co_return entry;
  }
  Status opened = co_await [](Sandboxes& self, SandboxKey of, Entry& into) -> async::Task<Status> {
    GANTRY_CO_TRY(into.address,
                  co_await self.pool_.Run([&self, &of] { return self.folders_.Address(of); }));
    GANTRY_CO_TRY(into.client,
                  co_await rpc::Client::Connect(self.loop_, into.address, kReachLimit));
    co_return Status();
  }(*this, key, *entry);
  if (opened) {
    co_return entry;
  }
  if (const auto found = entries_.find(key); found != entries_.end() && found->second == entry) {
    entries_.erase(found);
  }
  Error error = std::move(opened).error();
  if (error.sys_errno == ENOENT || error.sys_errno == ECONNREFUSED) {
    error =
        Error{Code::kNotFound, 0, "sandbox '" + key.id + "': the keeper that had it has ended", {}};
  }
  co_return std::unexpected(std::move(error));
}

async::Task<Result<std::string>> Sandboxes::Call(SandboxKey key, std::string method,
                                                 std::string payload,
                                                 std::chrono::nanoseconds timeout,
                                                 rpc::Metadata metadata) {
  GANTRY_CO_TRY(const EntryPtr entry, co_await Open(std::move(key)));
  co_return co_await entry->client->Call(kSandboxService, std::move(method), std::move(payload),
                                         timeout, std::move(metadata));
}

async::Task<void> Sandboxes::AskEnd(EntryPtr entry, std::string payload) {
  entry->asking = true;
  const Result<std::string> answer = co_await entry->client->Call(
      kSandboxService, "WaitSandbox", std::move(payload), std::chrono::nanoseconds(0));
  entry->asking = false;
  for (async::OneShot<Result<std::string>>& wait : entry->waits) {
    wait.Set(answer);
  }
}

async::Task<Result<std::string>> Sandboxes::Wait(SandboxKey key, std::string payload,
                                                 std::shared_ptr<rpc::Abandonment> abandonment) {
  GANTRY_CO_TRY(const EntryPtr entry, co_await Open(std::move(key)));
  const auto wait = entry->waits.emplace(entry->waits.end());
  if (!entry->asking) {
    async::Start(AskEnd(entry, std::move(payload)));
  }
  abandonment->Park([own = *wait]() mutable {
    own.Set(Fail(Code::kCanceled, "wait for its end: the caller has gone"));
  });
  Result<std::string> answer = std::move(co_await wait->Wait());
  entry->waits.erase(wait);
  co_return answer;
}

async::Task<Result<std::string>> Sandboxes::Address(SandboxKey key) {
  GANTRY_CO_TRY(const EntryPtr entry, co_await Open(std::move(key)));
  co_return entry->address;
}

void Sandboxes::Forget(const SandboxKey& key) {
  const auto entry = entries_.extract(key);
  if (entry && entry.mapped()->client) {
    entry.mapped()->client.reset();
  }
}

}  // namespace gantry::door
