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
  Loop& loop;
  const size_t max_threads;
  const size_t max_queued;

  /// Guards all below.
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::deque<internal::PoolJob*> queue;
  size_t threads = 0;
  size_t idle = 0;
  /// Jobs that threads work on.
  size_t running = 0;
  bool stopping = false;
  /// Threads that have ended, or are about to, and were not joined. One that
  /// leaves joins those before it, so an idle pool keeps one small stack.
  std::vector<pthread_t> left;

  static void* Main(void* shared);
  void Work();
  internal::PoolJob* Next(std::unique_lock<std::mutex>& lock);
  static void JoinAll(const std::vector<pthread_t>& threads);
};

void* WorkerPool::Shared::Main(void* shared) {
  static_cast<Shared*>(shared)->Work();
  return nullptr;
}

void WorkerPool::Shared::Work() {
  std::unique_lock lock(mutex);
  while (internal::PoolJob* job = Next(lock)) {
    lock.unlock();
    job->Execute();
    // Nothing touches `job` from here on: its frame may be gone.
    loop.Post([waiter = job->waiter] { ResumeSoon(waiter); });
    lock.lock();
    --running;
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
      changed.wait_for(lock, kIdleTime, [this] { return stopping || !queue.empty(); });
  --idle;
  if (!called || queue.empty()) {
    return nullptr;
  }
  internal::PoolJob* job = queue.front();
  queue.pop_front();
  ++running;
  return job;
}

void WorkerPool::Shared::JoinAll(const std::vector<pthread_t>& threads) {
  for (const pthread_t thread : threads) {
    pthread_join(thread, nullptr);
  }
}

WorkerPool::WorkerPool(Loop& loop, int threads, size_t max_queued)
    : shared_(
          std::make_unique<Shared>(loop, static_cast<size_t>(std::max(threads, 1)), max_queued)) {}

WorkerPool::~WorkerPool() {
  std::deque<internal::PoolJob*> waiting;
  std::vector<pthread_t> left;
  {
    std::unique_lock lock(shared_->mutex);
    shared_->stopping = true;
    waiting.swap(shared_->queue);
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
  const size_t waiting = shared.queue.size();
  if (waiting + shared.running >= shared.max_threads + shared.max_queued) {
    return Fail(Code::kResourceExhausted, "worker call: {} calls wait already", waiting);
  }
  if (waiting >= shared.idle && shared.threads < shared.max_threads) {
    pthread_t thread{};
    const int result = StartThread(thread, &Shared::Main, &shared);
    if (result == 0) {
      ++shared.threads;
    } else if (shared.threads == 0) {
      return FailErrno(result, "start a worker thread");
    }
  }
  shared.queue.push_back(&job);
  shared.changed.notify_one();
  return {};
}

WorkerPool::Counts WorkerPool::counts() const {
  std::unique_lock lock(shared_->mutex);
  return {.threads = shared_->threads, .idle = shared_->idle, .queued = shared_->queue.size()};
}

}  // namespace gantry::os
