// SPDX-License-Identifier: Apache-2.0
//
// Threads for calls that block: mounts, recursive deletes, backends. A
// coroutine waits for such a call without holding up its loop.
#pragma once

#include <coroutine>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <gantry/error.h>

#include "core/os/co.h"
#include "core/os/loop.h"

namespace gantry::os {

namespace internal {

/// A call on its way through the pool; lives in the frame of who waits for it.
class PoolJob {
 public:
  PoolJob() = default;
  PoolJob(const PoolJob&) = delete;
  PoolJob& operator=(const PoolJob&) = delete;

  /// Makes the call. Thread: blocking pool.
  virtual void Execute() noexcept = 0;
  /// Sets the outcome of a call that was not made.
  virtual void Fail(Error error) = 0;

  std::coroutine_handle<> waiter;

 protected:
  ~PoolJob() = default;
};

/// `<function> threw: <what>` for the exception that is being handled.
Error DescribeCurrentException();

}  // namespace internal

/// Threads start when there is work, up to a maximum, with all signals blocked
/// and stacks of 256 KiB; one that had no work for ten seconds ends.
/// Thread: the loop's; functions run on the pool's threads.
class WorkerPool {
 public:
  WorkerPool(Loop& loop, int threads, size_t max_queued);

  /// Waits for the functions that run; who waits for one that had not begun
  /// gets CANCELED in the loop's next turn. The loop must outlive the pool.
  /// Blocks: until the running functions return.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// Calls `function` (which returns a `Result`) on a thread of the pool and
  /// gives what it returns. Errors: RESOURCE_EXHAUSTED with a full queue;
  /// CANCELED as above; INTERNAL where `function` throws.
  /// Owner: `function` is destroyed on the loop's thread, with the task.
  template <class F>
  Task<std::invoke_result_t<F&>> Run(F function) {
    Job<F> job(*this, std::move(function));
    co_return co_await job;
  }

  /// For `gantryctl` and tests.
  struct Counts {
    size_t threads = 0;
    size_t idle = 0;
    size_t queued = 0;
  };

  Counts counts() const;

 private:
  struct Shared;

  template <class F>
  class Job final : public internal::PoolJob {
   public:
    using Outcome = std::invoke_result_t<F&>;

    Job(WorkerPool& pool, F function) : pool_(pool), function_(std::move(function)) {}

    bool await_ready() const noexcept { return false; }

    bool await_suspend(std::coroutine_handle<> self) {
      waiter = self;
      Status submitted = pool_.Submit(*this);
      if (submitted) {
        return true;
      }
      Fail(std::move(submitted).error());
      return false;
    }

    Outcome await_resume() {
      // Resumed by `Execute` or `Fail`, which set it.
      return std::move(*outcome_);  // NOLINT(bugprone-unchecked-optional-access)
    }

    void Execute() noexcept override {
      // A thread root: the one place where an exception of `function` ends.
      try {
        outcome_.emplace(function_());
      } catch (...) {
        Fail(internal::DescribeCurrentException());
      }
    }

    void Fail(Error error) override { outcome_.emplace(std::unexpected(std::move(error))); }

   private:
    WorkerPool& pool_;
    F function_;
    std::optional<Outcome> outcome_;
  };

  Status Submit(internal::PoolJob& job);

  std::unique_ptr<Shared> shared_;
};

}  // namespace gantry::os
