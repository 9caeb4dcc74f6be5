// SPDX-License-Identifier: Apache-2.0
//
// The sandboxes that the controller has, each called through its own socket, at which the keeper
// listens, by the Sandbox service that containerd's shims have. So a call goes on over an engine's
// end, and this program knows of a sandbox only where it is.
#pragma once

#include <chrono>
#include <list>
#include <map>
#include <memory>
#include <string>

#include <gantry/error.h>

#include "core/async/co.h"
#include "core/async/loop.h"
#include "core/async/worker_pool.h"
#include "core/door/folders.h"
#include "core/rpc/client.h"
#include "core/rpc/method_table.h"

namespace gantry::door {

/// Thread: loop.
class Sandboxes {
 public:
  /// All outlive it.
  Sandboxes(async::Loop& loop, async::WorkerPool& pool, const Folders& folders)
      : loop_(loop), pool_(pool), folders_(folders) {}

  Sandboxes(const Sandboxes&) = delete;
  Sandboxes& operator=(const Sandboxes&) = delete;
  ~Sandboxes() = default;

  /// Calls its Sandbox service. `timeout` 0: none. Errors: kNotFound where there is none, or where
  /// nobody listens any more: the keeper that had it has ended; what the engine answers.
  async::Task<Result<std::string>> Call(SandboxKey key, std::string method, std::string payload,
                                        std::chrono::nanoseconds timeout, rpc::Metadata metadata);

  /// WaitSandbox, asked once for all who wait. Errors:
  /// also kCanceled when it is abandoned.
  async::Task<Result<std::string>> Wait(SandboxKey key, std::string payload,
                                        std::shared_ptr<rpc::Abandonment> abandonment);

  /// The path of its socket, where somebody listens. Errors: kNotFound.
  async::Task<Result<std::string>> Address(SandboxKey key);

  /// It is gone: its connection is closed, and those that wait get kUnavailable.
  void Forget(const SandboxKey& key);

 private:
  struct Entry {
    std::string address;
    std::unique_ptr<rpc::Client> client;
    /// Making the connection.
    async::Slot slot;
    /// WaitSandbox is under way.
    bool asking = false;
    /// Those that wait for its answer.
    std::list<async::OneShot<Result<std::string>>> waits;
  };

  using EntryPtr = std::shared_ptr<Entry>;

  async::Task<Result<EntryPtr>> Open(SandboxKey key);
  static async::Task<void> AskEnd(EntryPtr entry, std::string payload);

  async::Loop& loop_;
  async::WorkerPool& pool_;
  const Folders& folders_;
  std::map<SandboxKey, EntryPtr> entries_;
};

}  // namespace gantry::door
