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

#include "core/os/co.h"
#include "core/os/loop.h"
#include "core/os/worker_pool.h"

namespace gantry::test {

/// Whether `happened` came true.
inline bool RunUntil(os::Loop& loop, const std::function<bool()>& happened) {
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
inline void RunAllReady(os::Loop& loop) {
  while (loop.RunOnce(std::chrono::milliseconds(0))) {
  }
}

/// Lets everything happen that needs neither a timer nor another process. What is still waiting
/// when its loop is destroyed is never resumed, which is a leak to a sanitizer.
inline bool Settle(os::Loop& loop, const os::WorkerPool& pool) {
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
os::Task<void> Store(os::Task<T> task, std::optional<T>* out) {
  *out = co_await std::move(task);
}

/// Runs `task` to its end.
template <class T>
T Await(os::Loop& loop, os::Task<T> task) {
  std::optional<T> out;
  os::Start(Store(std::move(task), &out));
  if (!RunUntil(loop, [&] { return out.has_value(); })) {
    throw std::runtime_error("the task did not end in time");
  }
  return std::move(*out);
}

inline void Await(os::Loop& loop, os::Task<void> task) {
  bool done = false;
  os::Start(std::move(task), [&done] { done = true; });
  if (!RunUntil(loop, [&] { return done; })) {
    throw std::runtime_error("the task did not end in time");
  }
}

}  // namespace gantry::test
