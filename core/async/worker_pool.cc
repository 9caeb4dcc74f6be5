// SPDX-License-Identifier: Apache-2.0
//
// The threads of the pool: when one starts, waits, is replaced and ends. A job lives in the
// frame of the coroutine that waits for it. It is taken off the lists before its waiter is woken,
// and after that nobody touches it. A thread that takes too long is not interrupted: another one
// is started in its place, and when the call returns there is a thread too many, which ends.
// Threads are joined by the next one that ends, or by the pool.
#include "core/async/worker_pool.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <vector>

#include <gantry/format.h>
#include <gantry/toolkit/sync/mutex.h>

namespace gantry::async {

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
struct WorkerPool::Shared : std::enable_shared_from_this<WorkerPool::Shared> {
  Shared(Loop& loop_in, PoolLimits limits_in)
      : loop(loop_in), limits(std::move(limits_in)), queues(limits) {
    limits.threads = std::max(limits.threads, 1);
    limits.most_threads = std::max(limits.most_threads, limits.threads);
  }

  Loop& loop;
  PoolLimits limits;
  /// Of the loop: looks for calls that take long.
  TimerId slow_timer;

  mutable Mutex mutex;
  std::condition_variable changed;
  WorkerQueues queues GANTRY_GUARDED_BY(mutex);
  /// Calls that threads work on.
  std::vector<internal::PoolJob*> at_work GANTRY_GUARDED_BY(mutex);
  size_t threads GANTRY_GUARDED_BY(mutex) = 0;
  size_t idle GANTRY_GUARDED_BY(mutex) = 0;
  /// Threads that have not looked for work yet.
  size_t starting GANTRY_GUARDED_BY(mutex) = 0;
  /// Threads whose place others have taken.
  size_t replaced GANTRY_GUARDED_BY(mutex) = 0;
  /// A thread is being woken that has not looked yet. It wakes the next one where there is
  /// more to take: who makes many calls need not wake one for each, and short calls are
  /// made by few threads.
  bool waking GANTRY_GUARDED_BY(mutex) = false;
  bool stopping GANTRY_GUARDED_BY(mutex) = false;
  /// Threads that have ended, or are about to, and were not joined. One that
  /// leaves joins those before it, so an idle pool keeps one small stack.
  std::vector<pthread_t> left GANTRY_GUARDED_BY(mutex);

  static void* Main(void* shared);
  void Work();
  bool MustWake() GANTRY_REQUIRES(mutex);
  internal::PoolJob* Next(MutexLock& lock) GANTRY_REQUIRES(mutex);
  WorkerQueues::Ran Leave(internal::PoolJob& job) GANTRY_REQUIRES(mutex);
  bool HasPlace() const GANTRY_REQUIRES(mutex);
  Status StartOne() GANTRY_REQUIRES(mutex);
  /// More could be taken than there are threads that will.
  bool IsShort() const GANTRY_REQUIRES(mutex);
  void WatchForSlow() GANTRY_REQUIRES(mutex);
  void ReplaceSlow();
  void StartForWaiting() GANTRY_REQUIRES(mutex);
  void WatchForHang(internal::PoolJob& job, Duration after);
  void CheckHang(internal::PoolJob& job);
  static void JoinAll(const std::vector<pthread_t>& threads);
};

void* WorkerPool::Shared::Main(void* shared) {
  static_cast<Shared*>(shared)->Work();
  return nullptr;
}

void WorkerPool::Shared::Work() {
  MutexLock lock(mutex);
  --starting;
  while (internal::PoolJob* job = Next(lock)) {
    const bool wake = MustWake();
    lock.Unlock();
    if (wake) {
      changed.notify_one();
    }
    AccountPtr account = job->account;
    {
      const Charged charged(account);
      job->Execute();
    }
    lock.Lock();
    const WorkerQueues::Ran ran = Leave(*job);
    lock.Unlock();
    // Nothing touches `job` from here on: its frame may be gone.
    loop.Post([waiter = job->waiter, account = std::move(account)]() mutable {
      ResumeSoon(waiter, std::move(account));
    });
    lock.Lock();
    queues.Done(ran);
  }
  const std::vector<pthread_t> earlier = std::exchange(left, {pthread_self()});
  --threads;
  changed.notify_all();
  lock.Unlock();
  JoinAll(earlier);
}

/// It has returned. Its thread has a place again where its own was taken.
WorkerQueues::Ran WorkerPool::Shared::Leave(internal::PoolJob& job) {
  job.phase = internal::PoolJob::Phase::kDone;
  std::erase(at_work, &job);
  replaced -= job.replaced ? 1 : 0;
  return {job.account.get(), job.terms.kind, job.lost};
}

/// The next job, or null where this thread shall end.
internal::PoolJob* WorkerPool::Shared::Next(MutexLock& lock) {
  if (threads - replaced > static_cast<size_t>(limits.threads)) {
    return nullptr;
  }
  ++idle;
  const bool called = changed.wait_for(lock.native(), kIdleTime, [this]() GANTRY_REQUIRES(mutex) {
    return stopping || queues.takeable() > 0;
  });
  --idle;
  waking = false;
  if (!called || queues.takeable() == 0) {
    return nullptr;
  }
  internal::PoolJob& job = queues.Dequeue();
  job.phase = internal::PoolJob::Phase::kRunning;
  job.begun = loop.Now();
  at_work.push_back(&job);
  return &job;
}

/// Whether the caller has to wake a thread, once it has let go of the lock.
bool WorkerPool::Shared::MustWake() {
  return queues.takeable() > 0 && idle > 0 && !std::exchange(waking, true);
}

bool WorkerPool::Shared::HasPlace() const {
  return threads - replaced < static_cast<size_t>(limits.threads) &&
         threads < static_cast<size_t>(limits.most_threads);
}

Status WorkerPool::Shared::StartOne() {
  pthread_t thread{};
  const int result = StartThread(thread, &Shared::Main, this);
  if (result != 0) {
    return FailErrno(result, "start a worker thread");
  }
  ++threads;
  ++starting;
  return {};
}

bool WorkerPool::Shared::IsShort() const { return queues.takeable() > idle + starting; }

void WorkerPool::Shared::StartForWaiting() {
  while (IsShort() && HasPlace() && StartOne()) {
  }
}

/// Somebody waits, and every thread is at work: looks again when the call that has been under
/// way for longest has taken long. Thread: loop.
void WorkerPool::Shared::WatchForSlow() {
  if (slow_timer || limits.slow_after == Duration::max() || !IsShort() || HasPlace() ||
      threads >= static_cast<size_t>(limits.most_threads)) {
    return;
  }
  TimePoint first = TimePoint::max();
  for (const internal::PoolJob* job : at_work) {
    first = job->replaced ? first : std::min(first, job->begun);
  }
  // A thread that has not begun yet counts from now.
  const TimePoint now = loop.Now();
  const Duration wait = std::min(first, now) + limits.slow_after - now;
  slow_timer = loop.After(std::max(wait, Duration::zero()), [weak = weak_from_this()] {
    if (const auto self = weak.lock()) {
      self->ReplaceSlow();
    }
  });
}

/// Others take the place of threads whose calls take long, as many as are missing.
void WorkerPool::Shared::ReplaceSlow() {
  const MutexLock lock(mutex);
  slow_timer = TimerId();
  const TimePoint now = loop.Now();
  for (internal::PoolJob* job : at_work) {
    if (!IsShort() || threads >= static_cast<size_t>(limits.most_threads)) {
      break;
    }
    if (!job->replaced && now - job->begun >= limits.slow_after) {
      job->replaced = true;
      ++replaced;
      StartForWaiting();
    }
  }
  WatchForSlow();
}

void WorkerPool::Shared::WatchForHang(internal::PoolJob& job, Duration after) {
  job.hang_timer = loop.After(after, [weak = weak_from_this(), &job] {
    if (const auto self = weak.lock()) {
      self->CheckHang(job);
    }
  });
}

/// It has had its time. One that had to wait for a thread has some of its own. Thread: loop.
void WorkerPool::Shared::CheckHang(internal::PoolJob& job) {
  std::vector<internal::PoolJob*> refused;
  Error reason;
  {
    const MutexLock lock(mutex);
    if (job.phase == internal::PoolJob::Phase::kDone) {
      return;
    }
    const Duration grace = limits.slow_after == Duration::max() ? Duration(1) : limits.slow_after;
    const Duration ran =
        job.phase == internal::PoolJob::Phase::kRunning ? loop.Now() - job.begun : Duration::zero();
    if (ran < grace) {
      WatchForHang(job, grace - ran);
      return;
    }
    refused = queues.MarkLost(job);
    if (!job.replaced) {
      job.replaced = true;
      ++replaced;
    }
    StartForWaiting();
    if (!refused.empty()) {
      reason = queues.Refusal(*refused.front());
    }
  }
  for (internal::PoolJob* one : refused) {
    one->Fail(reason);
    loop.Post([waiter = one->waiter, account = one->account]() mutable {
      ResumeSoon(waiter, std::move(account));
    });
  }
  if (limits.on_lost) {
    const std::string whose = job.account ? job.account->name : std::string("nobody");
    limits.on_lost(job.terms.what.empty() ? Format("a call for '{}'", whose) : job.terms.what);
  }
}

void WorkerPool::Shared::JoinAll(const std::vector<pthread_t>& threads) {
  for (const pthread_t thread : threads) {
    pthread_join(thread, nullptr);
  }
}

WorkerPool::WorkerPool(Loop& loop, PoolLimits limits)
    : loop_(loop), shared_(std::make_shared<Shared>(loop, std::move(limits))) {}

WorkerPool::~WorkerPool() {
  std::vector<internal::PoolJob*> waiting;
  std::vector<pthread_t> left;
  {
    MutexLock lock(shared_->mutex);
    shared_->stopping = true;
    waiting = shared_->queues.Clear();
    shared_->changed.notify_all();
    while (shared_->threads > 0) {
      shared_->changed.wait(lock.native());
    }
    left.swap(shared_->left);
  }
  Shared::JoinAll(left);
  loop_.Cancel(shared_->slow_timer);
  for (internal::PoolJob* job : waiting) {
    job->Fail(Error{Code::kCanceled, 0, "worker call: the pool is being closed", {}});
    shared_->loop.Post([waiter = job->waiter] { ResumeSoon(waiter); });
  }
}

Status WorkerPool::Submit(internal::PoolJob& job) {
  loop_.AssertLoopThread();
  Shared& shared = *shared_;
  MutexLock lock(shared.mutex);
  GANTRY_CHECK_OK(shared.queues.CheckRoom(job));
  if (shared.queues.takeable() >= shared.idle && shared.HasPlace()) {
    Status started = shared.StartOne();
    if (!started && shared.threads == 0) {
      return started;
    }
  }
  shared.queues.Enqueue(job);
  shared.WatchForSlow();
  if (job.terms.hangs_at != kNeverHangs) {
    const TimePoint now = loop_.Now();
    shared.WatchForHang(job, std::max(job.terms.hangs_at - now, Duration::zero()));
  } else if (shared.limits.hangs_after != Duration::max()) {
    shared.WatchForHang(job, shared.limits.hangs_after);
  }
  const bool wake = shared.MustWake();
  // Whoever wakes shall not wait for the lock.
  lock.Unlock();
  if (wake) {
    shared.changed.notify_one();
  }
  return {};
}

WorkerPool::Counts WorkerPool::counts() const {
  MutexLock lock(shared_->mutex);
  return {.threads = shared_->threads,
          .idle = shared_->idle,
          .queued = shared_->queues.queued(),
          .running = shared_->queues.running(),
          .lost = shared_->queues.lost()};
}

}  // namespace gantry::async
