// SPDX-License-Identifier: Apache-2.0
//
// As much of a containerd as a shim needs to talk to: a ttrpc socket that takes
// events. It can go away and come back.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "core/rpc/ttrpc.h"

namespace gantry::contract {

/// An event as it arrived. `exec` is set for an exec's.
struct Event {
  std::string ns;
  std::string topic;
  std::string container;
  std::string exec;
  uint32_t pid = 0;
  uint32_t status = 0;

  /// "create", "exit(x1)": what a test compares.
  std::string Short() const;
};

/// Thread: any.
class FakeContainerd {
 public:
  explicit FakeContainerd(std::string path);
  FakeContainerd(const FakeContainerd&) = delete;
  FakeContainerd& operator=(const FakeContainerd&) = delete;
  ~FakeContainerd();

  const std::string& path() const { return path_; }

  /// Those of one container, in the order of their arrival. An event that is
  /// there twice in a row was sent again after an engine's end, and counts once.
  std::vector<Event> EventsOf(const std::string& container) const;
  /// Waits until `count` have come; returns all there are then.
  std::vector<std::string> WaitForTopics(const std::string& container, size_t count) const;

  /// Refuses connections and ends those there are.
  void GoAway();
  void ComeBack();

 private:
  void Serve();
  void Answer(int fd, const rpc::Frame& frame);
  void Take(const std::string& payload);

  const std::string path_;
  UniqueFd listener_;
  UniqueFd wake_;
  std::thread thread_;
  std::atomic<bool> ending_ = false;

  /// Guards what follows: tests read while the server writes.
  mutable std::mutex mutex_;
  std::vector<Event> events_;
};

}  // namespace gantry::contract
