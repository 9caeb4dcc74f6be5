// SPDX-License-Identifier: Apache-2.0
//
// The agent's one loop: descriptors that become ready, and times that come. What is called by it
// never waits; what waits is done by a `Workers` child.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::vmm::guest {

/// Thread: one.
class Loop {
 public:
  using Ready = std::function<void(uint32_t events)>;

  /// A descriptor that is watched, until this is destroyed. Moved, not copied.
  class Watch {
   public:
    Watch() = default;
    Watch(Watch&& other) noexcept;
    Watch& operator=(Watch&& other) noexcept;
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

    ~Watch() { Reset(); }

    /// EPOLL*; 0: nothing, and a peer that hangs up does not wake anybody either.
    void Want(uint32_t events);
    void Reset();

   private:
    friend class Loop;
    Loop* loop_ = nullptr;
    uint64_t number_ = 0;
  };

  static Result<std::unique_ptr<Loop>> Make();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop() = default;

  /// `fd` stays the caller's, and open as long as the watch.
  Watch On(int fd, uint32_t events, Ready ready);
  /// Calls `then` once, not before that time has passed. Again, with the same `name`: in place of
  /// the last one.
  void After(const void* name, std::chrono::milliseconds time, std::function<void()> then);

  void Cancel(const void* name) { timers_.erase(name); }

  /// One turn: waits until something is ready, or for `most`. Errors: the kernel's.
  Status Turn(std::chrono::milliseconds most);

 private:
  struct Watched {
    int fd = -1;
    uint32_t events = 0;
    std::shared_ptr<Ready> ready;
  };

  struct Timer {
    Deadline at;
    std::function<void()> then;
  };

  explicit Loop(UniqueFd epoll) : epoll_(std::move(epoll)) {}

  void Want(uint64_t number, uint32_t events);
  void Forget(uint64_t number);
  void RunTimers();
  int TimeLeft(std::chrono::milliseconds most) const;

  const UniqueFd epoll_;
  std::map<uint64_t, Watched> watched_;
  std::map<const void*, Timer> timers_;
  uint64_t last_ = 0;
};

}  // namespace gantry::vmm::guest
