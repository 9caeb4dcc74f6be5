// SPDX-License-Identifier: Apache-2.0
#include "core/backend/watches.h"

#include <sys/epoll.h>

#include <condition_variable>
#include <optional>
#include <thread>
#include <utility>

#include <gantry/toolkit/sync/mutex.h>

#include "core/async/ask.h"
#include "core/async/co.h"
#include "core/async/worker_pool.h"
#include "core/log/log.h"

namespace gantry::backend {
namespace {

constexpr uint32_t kReadable = EPOLLIN | EPOLLRDHUP;

/// Shared by the watch, the loop and the worker that runs the callback.
struct State {
  State(async::Loop& loop_in, async::WorkerPool& pool_in, WatchOwner owner_in, int fd_in,
        std::function<void()> ready_in)
      : loop(loop_in),
        pool(pool_in),
        owner(std::move(owner_in)),
        fd(fd_in),
        ready(std::move(ready_in)) {}

  async::Loop& loop;
  async::WorkerPool& pool;
  const WatchOwner owner;
  const int fd;
  const std::function<void()> ready;
  /// Loop only.
  async::WatchId watch;

  /// Guards what follows: the watch may end on any thread.
  Mutex mutex;
  std::condition_variable idle;
  bool ended GANTRY_GUARDED_BY(mutex) = false;
  std::optional<std::thread::id> running GANTRY_GUARDED_BY(mutex);
};

Status RunCallback(State& state) {
  {
    const MutexLock lock(state.mutex);
    if (state.ended) {
      return {};
    }
    state.running = std::this_thread::get_id();
  }
  state.ready();
  const MutexLock lock(state.mutex);
  state.running.reset();
  state.idle.notify_all();
  return {};
}

async::Task<void> RunOnPool(std::shared_ptr<State> state) {
  const Status ran = co_await state->pool.RunFor(
      state->owner.account, [state] { return RunCallback(*state); },
      async::CallTerms{.refusable = async::Refusable::kNo,
                       .kind = async::CallKind::kWatch,
                       .what = state->owner.what});
  if (!ran) {
    LogError({{"backend", state->owner.backend}}, "watch of backend '{}': {}", state->owner.backend,
             ran.error().message);
    const MutexLock lock(state->mutex);
    state->running.reset();
    state->idle.notify_all();
  }
  state->loop.Rearm(state->watch, kReadable);
}

class PoolWatch final : public Watch {
 public:
  explicit PoolWatch(std::shared_ptr<State> state) : state_(std::move(state)) {}

  PoolWatch(const PoolWatch&) = delete;
  PoolWatch& operator=(const PoolWatch&) = delete;

  ~PoolWatch() override {
    {
      MutexLock lock(state_->mutex);
      state_->ended = true;
      while (state_->running.value_or(std::this_thread::get_id()) != std::this_thread::get_id()) {
        state_->idle.wait(lock.native());
      }
    }
    const auto unwatch = [state = state_] {
      state->loop.Unwatch(std::exchange(state->watch, async::WatchId()));
    };
    if (state_->loop.IsLoopThread()) {
      unwatch();
    } else {
      async::Call(state_->loop, unwatch);
    }
  }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace

std::unique_ptr<Watch> WatchOnPool(async::Loop& loop, async::WorkerPool& pool, WatchOwner owner,
                                   int fd, std::function<void()> ready) {
  auto state = std::make_shared<State>(loop, pool, std::move(owner), fd, std::move(ready));
  async::Call(loop, [state] {
    state->watch = state->loop.Watch(state->fd, kReadable, [state](uint32_t) {
      state->loop.Rearm(state->watch, 0);
      async::Start(RunOnPool(state));
    });
  });
  return std::make_unique<PoolWatch>(std::move(state));
}

}  // namespace gantry::backend
