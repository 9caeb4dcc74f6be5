// SPDX-License-Identifier: Apache-2.0
//
// An engine for the streams under test: a store that keeps what it is given, as
// the keeper does, and spawns that are this process's children.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gantry/error.h>
#include <gantry/host_process.h>

#include "core/async/loop.h"
#include "core/io/host.h"
#include "core/os/spawn.h"

namespace gantry::io {

/// A child of the test. Thread: any, one at a time.
class ChildProcess : public HostProcess {
 public:
  explicit ChildProcess(os::SpawnResult child) : child_(std::move(child)) {}

  ~ChildProcess() override;

  HostPid pid() const override { return {child_.process.pid}; }

  uint64_t start_time() const override { return child_.process.start_time; }

  Status Signal(int signal) override;
  std::optional<WaitStatus> Ended() const override;
  Result<WaitStatus> Wait(std::chrono::milliseconds limit) override;

 private:
  os::SpawnResult child_;
  mutable std::mutex mutex_;
  mutable std::optional<WaitStatus> ended_;
};

class FakeHost : public StdioHost {
 public:
  FakeHost();
  ~FakeHost() override;

  Status Put(std::vector<StoredFd> fds) override;
  Status Hold(std::vector<HeldFifo> fifos) override;
  void PutThen(std::vector<StoredFd> fds, std::move_only_function<void(Status)> done) override;
  void Drop(std::vector<std::string> names) override;
  void AwaitStreams(std::vector<std::string> ids,
                    std::function<void(size_t, StreamConnection)> arrived,
                    std::function<void()> looked) override;
  void ForgetStreams() override;
  void TookStream(uint64_t number) override;
  Result<std::shared_ptr<HostProcess>> Spawn(SpawnRequest request) override;
  std::shared_ptr<HostProcess> FindSpawned(std::string_view tag) override;
  void ConsoleSignal(uint32_t signal) override;
  void Log(LogLevel level, std::string_view message) override;

  /// A client has opened the stream `id`: it is there for whoever awaits it, until it is taken.
  void Connect(const std::string& id, StreamConnection connection);
  std::vector<uint64_t> Took();
  /// What the engine's loop had to do has been done.
  void Settle();

  /// The names that are stored now.
  std::vector<std::string> Names();
  /// Copies of all, as the keeper gives them to a new engine.
  std::vector<StoredFd> Copies();
  /// Waits until exactly these names are stored.
  bool AwaitNames(std::vector<std::string> names);
  std::vector<std::string> Logged();
  /// All console signals so far.
  std::vector<uint32_t> Signals();

  bool fail_put = false;
  /// Runs when `Hold` is called, before it does anything.
  std::function<void()> on_hold;
  /// Runs on the IO thread with each console signal.
  std::function<void()> on_signal;

 private:
  std::mutex mutex_;
  std::map<std::string, UniqueFd> store_;
  std::map<std::string, std::shared_ptr<HostProcess>, std::less<>> spawned_;
  std::vector<std::string> logged_;
  std::vector<uint32_t> signals_;
  std::vector<std::string> awaited_;
  std::function<void(size_t, StreamConnection)> arrived_;
  std::map<std::string, StreamConnection> parked_;
  std::vector<uint64_t> took_;
  async::Loop loop_;
  std::jthread thread_;
};

/// Starts `/bin/sh -c script`; `fds` as in `SpawnRequest`.
std::shared_ptr<ChildProcess> Shell(const std::string& script,
                                    std::vector<std::pair<int, int>> fds);

/// Up to 10 s, until `condition` holds.
template <class Condition>
bool Eventually(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) {
      return false;
    }
    std::this_thread::yield();
  }
  return true;
}

}  // namespace gantry::io
