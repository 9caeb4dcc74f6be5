// SPDX-License-Identifier: Apache-2.0
//
// What the streams of one process need of the engine: the keeper's descriptor
// store under names of their own, spawns for log programs, and a way out for the
// signals that are typed into a foreign console.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/toolkit/sync/mutex.h>

#include "core/async/co.h"
#include "core/backend/services.h"
#include "core/io/host.h"

namespace gantry::io {
class ProcessIo;
}  // namespace gantry::io

namespace gantry::task {

class StdioHost final : public io::StdioHost {
 public:
  /// `prefix` is unique on the node: no other process's begins with it. `group`: the address of
  /// the group whose limits log programs get. `on_signals`: runs on the loop where there are
  /// console signals to be taken until there are none.
  StdioHost(const backend::Services& services, std::string prefix, std::string group,
            std::function<void()> on_signals)
      : services_(services),
        prefix_(std::move(prefix)),
        group_(std::move(group)),
        on_signals_(std::move(on_signals)) {}

  const std::string& prefix() const { return prefix_; }

  Status Put(std::vector<io::StoredFd> fds) override;
  Status Hold(std::vector<io::HeldFifo> fifos) override;
  void PutThen(std::vector<io::StoredFd> fds, std::move_only_function<void(Status)> done) override;
  void Drop(std::vector<std::string> names) override;
  void AwaitStreams(std::vector<std::string> ids,
                    std::function<void(size_t, io::StreamConnection)> arrived,
                    std::function<void()> looked) override;
  void ForgetStreams() override;
  void TookStream(uint64_t number) override;
  Result<std::shared_ptr<HostProcess>> Spawn(SpawnRequest request) override;
  std::shared_ptr<HostProcess> FindSpawned(std::string_view tag) override;
  void ConsoleSignal(uint32_t signal) override;
  void Log(LogLevel level, std::string_view message) override;

  /// How the log programs ended matters no more. Thread: loop.
  void ForgetEnded();

  /// The oldest console signal that has not been taken; 0: there is none.
  uint32_t TakeConsoleSignal();

 private:
  const backend::Services services_;
  const std::string prefix_;
  const std::string group_;
  const std::function<void()> on_signals_;
  /// A log program was spawned, or asked for, under a name.
  std::atomic<bool> spawned_ = false;

  /// Under which the streams of this process are awaited. Thread: loop.
  const std::shared_ptr<std::vector<uint64_t>> awaited_ = std::make_shared<std::vector<uint64_t>>();

  /// Guards what follows: the IO thread adds, and must not flood the loop.
  Mutex mutex_;
  std::deque<uint32_t> console_signals_ GANTRY_GUARDED_BY(mutex_);
  /// From `on_signals` until there are none.
  bool taking_ GANTRY_GUARDED_BY(mutex_) = false;
};

/// The streams, which call `host` on other threads until they are gone.
std::shared_ptr<io::ProcessIo> WithHost(std::unique_ptr<io::ProcessIo> streams,
                                        std::shared_ptr<StdioHost> host);

/// Those of `names`, which are in order, that begin with `prefix`, the prefix cut off.
std::vector<std::string> NamesBelow(const std::vector<std::string>& names, std::string_view prefix);

/// What is stored as `prefix` and each of `names`. Thread: loop.
async::Task<std::vector<io::StoredFd>> TakeStored(keeper_client::KeeperLink& link,
                                                  std::string prefix,
                                                  std::vector<std::string> names);

}  // namespace gantry::task
