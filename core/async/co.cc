// SPDX-License-Identifier: Apache-2.0
//
// Waking coroutines, and the waiting that is built on it: scopes, slots, sleeping, descriptors.
// A coroutine that is woken is queued and resumed when the outermost ResumeScope of its thread
// ends, one after the other in the order of the waking. So whoever wakes another, even in the
// middle of changing an object, has finished before the other sees the object. Each runs on the
// account of whoever waited, not of whoever woke it.
#include "core/async/co.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>

namespace gantry::async {

namespace {

struct Woken {
  std::coroutine_handle<> handle;
  AccountPtr account;
};

struct ResumeQueue {
  std::deque<Woken> ready;
  int scopes = 0;
};

ResumeQueue& ThisThreadsQueue() {
  static thread_local ResumeQueue queue;
  return queue;
}

/// The frame of a detached root: it starts at once and frees itself.
struct Detached {
  struct promise_type {
    Detached get_return_object() const { return {}; }

    std::suspend_never initial_suspend() const noexcept { return {}; }

    std::suspend_never final_suspend() const noexcept { return {}; }

    void return_void() const {}

    [[noreturn]] void unhandled_exception() const noexcept {
      // The root of a coroutine is where exceptions end, and so does the
      // process: an invariant is broken, and a restart is cheap.
      try {
        throw;
      } catch (const std::exception& exception) {
        fprintf(stderr, "gantry: an exception left a coroutine: %s\n", exception.what());
      } catch (...) {
        fputs("gantry: an exception left a coroutine\n", stderr);
      }
      std::abort();
    }
  };
};

Detached RunRoot(Task<void> task, std::move_only_function<void()> done) {
  {
    // Its frame is freed before anyone hears that it has ended.
    Task<void> running = std::move(task);
    co_await std::move(running);
  }
  if (done) {
    done();
  }
}

}  // namespace

void ResumeSoon(std::coroutine_handle<> handle) { ResumeSoon(handle, Charged::Current()); }

void ResumeSoon(std::coroutine_handle<> handle, AccountPtr account) {
  const ResumeScope scope;
  ThisThreadsQueue().ready.push_back({handle, std::move(account)});
}

ResumeScope::ResumeScope() { ++ThisThreadsQueue().scopes; }

ResumeScope::~ResumeScope() {
  ResumeQueue& queue = ThisThreadsQueue();
  if (queue.scopes == 1) {
    while (!queue.ready.empty()) {
      Woken next = std::move(queue.ready.front());
      queue.ready.pop_front();
      const Charged charged(std::move(next.account));
      next.handle.resume();
    }
  }
  --queue.scopes;
}

namespace internal {

void WaiterList::Add(Waiter& waiter) {
  waiter.queued = true;
  waiters_.push_back(&waiter);
}

void WaiterList::Remove(Waiter& waiter) {
  waiter.queued = false;
  std::erase(waiters_, &waiter);
}

bool WaiterList::WakeOne() {
  if (waiters_.empty()) {
    return false;
  }
  Waiter& waiter = *waiters_.front();
  waiters_.erase(waiters_.begin());
  waiter.queued = false;
  ResumeSoon(waiter.handle);
  return true;
}

void WaiterList::WakeAll() {
  const ResumeScope scope;
  for (Waiter* waiter : std::exchange(waiters_, {})) {
    waiter->queued = false;
    ResumeSoon(waiter->handle);
  }
}

}  // namespace internal

void Start(Task<void> task, std::move_only_function<void()> done) {
  const ResumeScope scope;
  RunRoot(std::move(task), std::move(done));
}

struct Scope::State {
  std::list<std::string> names;
  internal::WaiterList joiners;

  struct Joined {
    State& state;
    internal::Waiter waiter;

    bool await_ready() const { return state.names.empty(); }

    void await_suspend(std::coroutine_handle<> self) {
      waiter.handle = self;
      state.joiners.Add(waiter);
    }

    void await_resume() const {}
  };

  static Task<void> Join(std::shared_ptr<State> state) {
    // A task may have been added between the waking and the resuming.
    while (!state->names.empty()) {
      Joined joined{*state, {}};
      co_await joined;
    }
  }
};

Scope::Scope() : state_(std::make_shared<State>()) {}

Scope::~Scope() = default;

void Scope::Spawn(std::string name, Task<void> task) {
  const auto entry = state_->names.insert(state_->names.end(), std::move(name));
  Start(std::move(task), [state = state_, entry] {
    state->names.erase(entry);
    if (state->names.empty()) {
      state->joiners.WakeAll();
    }
  });
}

Task<void> Scope::Join() { return State::Join(state_); }

size_t Scope::running() const { return state_->names.size(); }

std::vector<std::string> Scope::names() const {
  return {state_->names.begin(), state_->names.end()};
}

Slot::Slot() : state_(std::make_shared<State>()) {}

void Slot::Hold::Release() {
  // The slot goes straight to the next in line, so nobody can overtake it.
  if (const auto state = std::move(state_); state && !state->waiters.WakeOne()) {
    state->held = false;
  }
}

bool Slot::Awaiter::await_ready() const noexcept {
  if (state_->held) {
    return false;
  }
  state_->held = true;
  return true;
}

void Slot::Awaiter::await_suspend(std::coroutine_handle<> self) {
  waiter_.handle = self;
  state_->waiters.Add(waiter_);
}

Slot::Hold Slot::TryAcquire() const {
  return std::exchange(state_->held, true) ? Hold() : Hold(state_);
}

bool Slot::held() const { return state_->held; }

namespace {

/// Suspends until a timer or a watch of `loop` calls, whichever is first.
class LoopAwaiter {
 public:
  LoopAwaiter(Loop& loop, Duration delay, int fd, uint32_t events)
      : loop_(loop), delay_(delay), fd_(fd), events_(events) {}

  bool await_ready() const noexcept { return false; }

  void await_suspend(std::coroutine_handle<> self) {
    if (delay_ != Duration::max()) {
      timer_ = loop_.After(delay_, [this, self] { Wake(self, 0); });
    }
    if (fd_ >= 0) {
      watch_ = loop_.Watch(fd_, events_, [this, self](uint32_t ready) { Wake(self, ready); });
    }
  }

  /// What is ready; 0: the delay has passed.
  uint32_t await_resume() const { return ready_; }

 private:
  void Wake(std::coroutine_handle<> self, uint32_t ready) {
    ready_ = ready;
    loop_.Cancel(timer_);
    loop_.Unwatch(watch_);
    ResumeSoon(self);
  }

  Loop& loop_;
  Duration delay_;
  int fd_;
  uint32_t events_;
  TimerId timer_;
  WatchId watch_;
  uint32_t ready_ = 0;
};

}  // namespace

Task<void> Sleep(Loop& loop, Duration delay) { co_await LoopAwaiter(loop, delay, -1, 0); }

Task<Result<uint32_t>> Ready(Loop& loop, int fd, uint32_t events, Duration deadline) {
  const uint32_t ready = co_await LoopAwaiter(loop, deadline, fd, events);
  if (ready == 0) {
    co_return Fail(Code::kDeadlineExceeded, "wait for descriptor {}: deadline exceeded", fd);
  }
  co_return ready;
}

}  // namespace gantry::async
