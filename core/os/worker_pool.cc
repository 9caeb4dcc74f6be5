// SPDX-License-Identifier: Apache-2.0
#include "core/os/worker_pool.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include <gantry/format.h>

namespace gantry::os {

namespace internal {

Error DescribeCurrentException() {
  try {
    throw;
  } catch (const std::exception& exception) {
    return Error{Code::kInternal, 0, Format("worker call threw: {}", exception.what()), {}};
  } catch (...) {
    return Error{Code::kInternal, 0, "worker call threw: not a std::exception", {}};
  }
}

}  // namespace internal

namespace {

constexpr std::chrono::seconds kIdleTime{10};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// Instrumented frames are several times larger.
constexpr size_t kStackBytes = size_t{2048} * 1024;
#else
constexpr size_t kStackBytes = size_t{256} * 1024;
#endif

/// pthread_create with no signal let through to the new thread.
int StartThread(pthread_t& thread, void* (*function)(void*), void* argument) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, std::max<size_t>(kStackBytes, PTHREAD_STACK_MIN));
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int result = pthread_create(&thread, &attributes, function, argument);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  return result;
}

}  // namespace

/// What the threads and the pool share. The pool joins every thread before it
/// goes, so a plain pointer is enough for them.
struct WorkerPool::Shared {
  /// The calls for one account, or those for nobody.
  struct Lane {
    std::deque<internal::PoolJob*> queue;
    size_t running = 0;
    /// So many of them at a time.
    size_t most = 0;
    /// In `turns`.
    bool waits = false;

    /// So many could be taken now.
    size_t takeable() const { return std::min(queue.size(), most - std::min(most, running)); }
  };

  Shared(Loop& loop_in, PoolLimits limits_in) : loop(loop_in), limits(limits_in) {
    limits.threads = std::max(limits.threads, 1);
    limits.threads_of_one = std::clamp(limits.threads_of_one, 1, std::max(limits.threads - 1, 1));
  }

  Loop& loop;
  PoolLimits limits;

  /// Guards all below.
  mutable std::mutex mutex;
  std::condition_variable changed;
  /// Those with calls that wait or run.
  std::map<const Account*, Lane> lanes;
  /// Those with calls that could be taken; the first is next.
  std::deque<const Account*> turns;
  /// Calls that wait, and how many of them could be taken.
  size_t queued = 0;
  size_t takeable = 0;
  size_t threads = 0;
  size_t idle = 0;
  /// A thread is being woken that has not looked yet. It wakes the next one where there is
  /// more to take: who makes many calls need not wake one for each, and short calls are
  /// made by few threads.
  bool waking = false;
  /// Calls that threads work on.
  size_t running = 0;
  bool stopping = false;
  /// Threads that have ended, or are about to, and were not joined. One that
  /// leaves joins those before it, so an idle pool keeps one small stack.
  std::vector<pthread_t> left;

  static void* Main(void* shared);
  void Work();
  bool MustWake();
  internal::PoolJob* Next(std::unique_lock<std::mutex>& lock);
  Status CheckRoom(const internal::PoolJob& job) const;
  void Enqueue(internal::PoolJob& job);
  internal::PoolJob* Dequeue();
  void Done(const Account* account);
  void TakeTurn(const Account* account, Lane& lane);
  static void JoinAll(const std::vector<pthread_t>& threads);
};

void* WorkerPool::Shared::Main(void* shared) {
  static_cast<Shared*>(shared)->Work();
  return nullptr;
}

void WorkerPool::Shared::Work() {
  std::unique_lock lock(mutex);
  while (internal::PoolJob* job = Next(lock)) {
    const bool wake = MustWake();
    lock.unlock();
    if (wake) {
      changed.notify_one();
    }
    AccountPtr account = job->account;
    {
      const Charged charged(account);
      job->Execute();
    }
    const Account* const whose = account.get();
    // Nothing touches `job` from here on: its frame may be gone.
    loop.Post([waiter = job->waiter, account = std::move(account)]() mutable {
      ResumeSoon(waiter, std::move(account));
    });
    lock.lock();
    Done(whose);
  }
  const std::vector<pthread_t> earlier = std::exchange(left, {pthread_self()});
  --threads;
  changed.notify_all();
  lock.unlock();
  JoinAll(earlier);
}

/// The next job, or null where this thread shall end.
internal::PoolJob* WorkerPool::Shared::Next(std::unique_lock<std::mutex>& lock) {
  ++idle;
  const bool called =
      changed.wait_for(lock, kIdleTime, [this] { return stopping || takeable > 0; });
  --idle;
  waking = false;
  return called && takeable > 0 ? Dequeue() : nullptr;
}

/// Whether the caller has to wake a thread, once it has let go of the lock.
bool WorkerPool::Shared::MustWake() {
  return takeable > 0 && idle > 0 && !std::exchange(waking, true);
}

Status WorkerPool::Shared::CheckRoom(const internal::PoolJob& job) const {
  if (job.refusable == Refusable::kNo) {
    return {};
  }
  if (queued + running >= static_cast<size_t>(limits.threads) + limits.queued) {
    return Fail(Code::kResourceExhausted,
                "worker call: {} calls wait already (limits.max_queued_calls)", queued);
  }
  const auto lane = job.account ? lanes.find(job.account.get()) : lanes.end();
  if (lane != lanes.end() && lane->second.queue.size() >= limits.queued_of_one) {
    return Fail(Code::kResourceExhausted,
                "worker call: {} calls of sandbox '{}' wait already "
                "(limits.max_queued_calls_per_sandbox)",
                lane->second.queue.size(), job.account->name);
  }
  return {};
}

void WorkerPool::Shared::TakeTurn(const Account* account, Lane& lane) {
  if (!lane.waits && lane.takeable() > 0) {
    lane.waits = true;
    turns.push_back(account);
  }
}

void WorkerPool::Shared::Enqueue(internal::PoolJob& job) {
  const Account* const account = job.account.get();
  Lane& lane = lanes[account];
  lane.most = static_cast<size_t>(account == nullptr ? limits.threads : limits.threads_of_one);
  takeable -= lane.takeable();
  lane.queue.push_back(&job);
  takeable += lane.takeable();
  ++queued;
  TakeTurn(account, lane);
}

internal::PoolJob* WorkerPool::Shared::Dequeue() {
  const Account* const account = turns.front();
  turns.pop_front();
  Lane& lane = lanes.at(account);
  lane.waits = false;
  takeable -= lane.takeable();
  internal::PoolJob* const job = lane.queue.front();
  lane.queue.pop_front();
  ++lane.running;
  takeable += lane.takeable();
  --queued;
  ++running;
  TakeTurn(account, lane);
  return job;
}

void WorkerPool::Shared::Done(const Account* account) {
  --running;
  const auto found = lanes.find(account);
  Lane& lane = found->second;
  takeable -= lane.takeable();
  --lane.running;
  takeable += lane.takeable();
  TakeTurn(account, lane);
  if (lane.running == 0 && lane.queue.empty()) {
    lanes.erase(found);
  }
}

void WorkerPool::Shared::JoinAll(const std::vector<pthread_t>& threads) {
  for (const pthread_t thread : threads) {
    pthread_join(thread, nullptr);
  }
}

WorkerPool::WorkerPool(Loop& loop, PoolLimits limits)
    : shared_(std::make_unique<Shared>(loop, limits)) {}

WorkerPool::~WorkerPool() {
  std::deque<internal::PoolJob*> waiting;
  std::vector<pthread_t> left;
  {
    std::unique_lock lock(shared_->mutex);
    shared_->stopping = true;
    for (auto& [account, lane] : shared_->lanes) {
      waiting.insert(waiting.end(), lane.queue.begin(), lane.queue.end());
      lane.queue.clear();
    }
    shared_->turns.clear();
    shared_->queued = 0;
    shared_->takeable = 0;
    shared_->changed.notify_all();
    shared_->changed.wait(lock, [this] { return shared_->threads == 0; });
    left.swap(shared_->left);
  }
  Shared::JoinAll(left);
  for (internal::PoolJob* job : waiting) {
    job->Fail(Error{Code::kCanceled, 0, "worker call: the pool is being closed", {}});
    shared_->loop.Post([waiter = job->waiter] { ResumeSoon(waiter); });
  }
}

Status WorkerPool::Submit(internal::PoolJob& job) {
  Shared& shared = *shared_;
  std::unique_lock lock(shared.mutex);
  GANTRY_CHECK_OK(shared.CheckRoom(job));
  const size_t takeable = shared.takeable;
  if (takeable >= shared.idle && shared.threads < static_cast<size_t>(shared.limits.threads)) {
    pthread_t thread{};
    const int result = StartThread(thread, &Shared::Main, &shared);
    if (result == 0) {
      ++shared.threads;
    } else if (shared.threads == 0) {
      return FailErrno(result, "start a worker thread");
    }
  }
  shared.Enqueue(job);
  const bool wake = shared.MustWake();
  // Whoever wakes shall not wait for the lock.
  lock.unlock();
  if (wake) {
    shared.changed.notify_one();
  }
  return {};
}

WorkerPool::Counts WorkerPool::counts() const {
  std::unique_lock lock(shared_->mutex);
  return {.threads = shared_->threads,
          .idle = shared_->idle,
          .queued = shared_->queued,
          .running = shared_->running};
}

}  // namespace gantry::os
