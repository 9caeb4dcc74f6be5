// SPDX-License-Identifier: Apache-2.0
//
// For the tests of forwarding: network namespaces with a loopback, TCP in them, and a context
// that watches descriptors and finds what an engine before has spawned.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <gantry/unique_fd.h>

#include "tests/unit/gvisor/fakes.h"

namespace gantry::gvisor {

/// New, with its loopback up. None: not possible here.
UniqueFd NetnsWithLoopback();
/// Gives its loopback another address.
bool AddAddress(const UniqueFd& netns, const std::string& address);
/// To be opened as a pod's.
std::string PathOfFd(const UniqueFd& fd);

/// A connected socket, or the errno; `address` is of either family. Null `netns`: the test's.
std::pair<UniqueFd, int> ConnectIn(const UniqueFd* netns, const std::string& address,
                                   uint16_t port);
/// A listener, and its port.
std::pair<UniqueFd, uint16_t> ListenIn(const UniqueFd* netns, const std::string& address,
                                       uint16_t port = 0, int backlog = 16);
/// Waits for it.
UniqueFd AcceptFrom(const UniqueFd& listener);

/// Whole. False: the peer has left.
bool SendText(const UniqueFd& socket, const std::string& text);
/// To the end; `error`: the errno it ended with, or 0.
std::string ReadAll(const UniqueFd& socket, int* error = nullptr);
std::string ReadSome(const UniqueFd& socket, size_t size);

/// Thread: any.
class WatchingContext : public FakeSandboxContext {
 public:
  Result<std::unique_ptr<Watch>> WatchReadable(int fd, std::function<void()> ready) override;
  Result<std::shared_ptr<HostProcess>> Spawn(SpawnRequest request) override;
  /// The last one of that name.
  std::shared_ptr<HostProcess> FindSpawned(std::string_view tag) override;
  Status Store(std::string_view name, const UniqueFd& fd) override;
  Result<UniqueFd> Take(std::string_view name) override;
  void Drop(std::string_view name) override;
  void Log(LogLevel level, std::string_view message) override;

  /// Waits for a line of the log that has these words.
  bool Said(const std::string& words);
  std::vector<std::string> StoredNames();

 private:
  std::mutex guard_;
  std::condition_variable said_;
};

}  // namespace gantry::gvisor
