// SPDX-License-Identifier: Apache-2.0
//
// Threads for calls that block: mounts, recursive deletes, backends. A
// coroutine waits for such a call without holding up its loop.
//
// Nobody gets all of the threads. Calls are made for somebody (an account) or for
// nobody; those of each wait in a queue of their own, and so many threads at most work for one
// account (worker_queues.h).
//
// A thread whose call takes long is not waited for: while somebody else waits, another one takes
// its place (`PoolLimits::most_threads`). When the call returns, the thread takes up its place
// again where that is free, or else ends. A call that has not returned at its `hangs_at` is
// lost: it is told to `PoolLimits::on_lost` and counted.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <gantry/error.h>

#include "core/async/account.h"
#include "core/async/co.h"
#include "core/async/loop.h"
#include "core/async/worker_queues.h"

namespace gantry::async {

namespace internal {

/// `<function> threw: <what>` for the exception that is being handled.
Error DescribeCurrentException();

}  // namespace internal

/// Threads start when there is work, up to a maximum, with all signals blocked
/// and stacks of 256 KiB; one that had no work for ten seconds ends.
/// Thread: the loop's; functions run on the pool's threads.
class WorkerPool {
 public:
  WorkerPool(Loop& loop, PoolLimits limits);

  /// For calls that are for nobody.
  WorkerPool(Loop& loop, int threads, size_t max_queued)
      : WorkerPool(loop, PoolLimits{.threads = threads, .queued = max_queued}) {}

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
    return RunFor(Charged::Current(), std::move(function));
  }

  /// The same on behalf of `account`, not of whom the caller works for. So does the caller from
  /// then on. Errors: UNAVAILABLE, too, where the account's calls hang.
  template <class F>
  Task<std::invoke_result_t<F&>> RunFor(AccountPtr account, F function, CallTerms terms) {
    Job<F> job(*this, std::move(function));
    job.account = std::move(account);
    job.terms = std::move(terms);
    co_return co_await job;
  }

  template <class F>
  Task<std::invoke_result_t<F&>> RunFor(AccountPtr account, F function,
                                        Refusable refusable = Refusable::kYes) {
    return RunFor(std::move(account), std::move(function), CallTerms{.refusable = refusable});
  }

  /// For `gantryctl` and tests.
  struct Counts {
    size_t threads = 0;
    size_t idle = 0;
    size_t queued = 0;
    /// Calls that threads work on.
    size_t running = 0;
    /// Of these, those that hang.
    size_t lost = 0;
  };

  Counts counts() const;

 private:
  struct Shared;

  template <class F>
  class Job final : public internal::PoolJob {
   public:
    using Outcome = std::invoke_result_t<F&>;

    Job(WorkerPool& pool, F function)
        : pool_(pool), loop_(pool.loop_), function_(std::move(function)) {}

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
      // The pool may have gone.
      loop_.Cancel(hang_timer);
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
    Loop& loop_;
    F function_;
    std::optional<Outcome> outcome_;
  };

  Status Submit(internal::PoolJob& job);

  Loop& loop_;
  /// Timers of the loop may outlive the pool.
  std::shared_ptr<Shared> shared_;
};

}  // namespace gantry::async
