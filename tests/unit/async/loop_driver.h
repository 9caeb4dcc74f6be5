// SPDX-License-Identifier: Apache-2.0
//
// Turns a loop on the test's own thread until something has happened, for at
// most a minute.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <stdexcept>
#include <utility>

#include "core/async/co.h"
#include "core/async/loop.h"
#include "core/async/worker_pool.h"

namespace gantry::test {

/// Whether `happened` came true.
inline bool RunUntil(async::Loop& loop, const std::function<bool()>& happened) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!happened()) {
    if (std::chrono::steady_clock::now() > deadline) {
      return false;
    }
    loop.RunOnce(std::chrono::milliseconds(50));
  }
  return true;
}

/// Does all that can be done without waiting.
inline void RunAllReady(async::Loop& loop) {
  while (loop.RunOnce(std::chrono::milliseconds(0))) {
  }
}

/// Lets everything happen that needs neither a timer nor another process. What is still waiting
/// when its loop is destroyed is never resumed, which is a leak to a sanitizer.
inline bool Settle(async::Loop& loop, const async::WorkerPool& pool) {
  // A worker is idle once its call back to the loop is posted, and what that
  // resumes may call a worker again.
  return RunUntil(loop, [&] {
    RunAllReady(loop);
    const auto counts = pool.counts();
    return counts.queued == 0 && counts.idle == counts.threads &&
           !loop.RunOnce(std::chrono::milliseconds(0));
  });
}

template <class T>
async::Task<void> Store(async::Task<T> task, std::optional<T>* out) {
  *out = co_await std::move(task);
}

/// Runs `task` to its end.
template <class T>
T Await(async::Loop& loop, async::Task<T> task) {
  std::optional<T> out;
  async::Start(Store(std::move(task), &out));
  if (!RunUntil(loop, [&] { return out.has_value(); })) {
    throw std::runtime_error("the task did not end in time");
  }
  return std::move(*out);
}

inline void Await(async::Loop& loop, async::Task<void> task) {
  bool done = false;
  async::Start(std::move(task), [&done] { done = true; });
  if (!RunUntil(loop, [&] { return done; })) {
    throw std::runtime_error("the task did not end in time");
  }
}

}  // namespace gantry::test
