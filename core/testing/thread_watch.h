// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include <gantry/context.h>

namespace gantry::fakes {

/// A watch with a thread of its own.
class ThreadWatch : public Watch {
 public:
  /// Errors: of eventfd(2).
  static Result<std::unique_ptr<Watch>> Start(int fd, std::function<void()> ready);

  ThreadWatch(int fd, UniqueFd wake, std::function<void()> ready);
  ThreadWatch(const ThreadWatch&) = delete;
  ThreadWatch& operator=(const ThreadWatch&) = delete;
  ~ThreadWatch() override;

 private:
  /// The thread's too: it may be the one that destroys the watch, and goes on then.
  struct Shared {
    UniqueFd wake;
    std::atomic<bool> stop = false;
    std::function<void()> ready;
  };

  static void Run(int fd, const Shared& shared);

  const std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace gantry::fakes
