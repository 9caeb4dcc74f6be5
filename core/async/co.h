// SPDX-License-Identifier: Apache-2.0
//
// Coroutines for one thread: tasks, detached roots, scopes, one-shot events, a
// first-come lock, and waiting for a loop's timers and descriptors.
//
// All of it belongs to the thread of one `Loop` and takes no locks. A waiting
// coroutine is never destroyed from outside: what waits must in the end be
// woken (by the event, a deadline, or a shut-down socket), else its frame leaks.
// Waking is not immediate; `resume.h` says when it happens.
//
// Parameters of a coroutine are taken by value: a reference may be dead after
// the first `co_await`. A lambda that captures must outlive its coroutine.
#pragma once

#include <cassert>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <gantry/error.h>

#include "core/async/loop.h"
#include "core/async/resume.h"

namespace gantry::async {

template <class T>
class Task;

namespace internal {

/// What the promises of all tasks share: who waits, and how it is woken.
///
/// A task is started inside its awaiter's `await_suspend` and says there
/// whether it has ended already. So a long row of tasks that never wait needs
/// no stack, even where the compiler makes no tail calls (-O0, sanitizers),
/// and a task that did wait passes control on by symmetric transfer.
class TaskPromiseBase {
 public:
  struct FinalAwaiter {
    bool await_ready() const noexcept { return false; }

    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> self) const noexcept {
      TaskPromiseBase& promise = self.promise();
      if (promise.starting_) {
        promise.ended_ = true;
        return std::noop_coroutine();
      }
      return promise.continuation_;
    }

    void await_resume() const noexcept {}
  };

  std::suspend_always initial_suspend() const noexcept { return {}; }

  FinalAwaiter final_suspend() const noexcept { return {}; }

  /// Runs the task until it waits or ends. True: it waits.
  bool StartFrom(std::coroutine_handle<> self, std::coroutine_handle<> continuation) {
    continuation_ = continuation;
    starting_ = true;
    self.resume();
    starting_ = false;
    return !ended_;
  }

 private:
  std::coroutine_handle<> continuation_;
  bool starting_ = false;
  bool ended_ = false;
};

template <class T>
class TaskPromise : public TaskPromiseBase {
 public:
  Task<T> get_return_object();

  template <class U>
    requires std::is_constructible_v<T, U&&>
  void return_value(U&& value) {
    outcome_.template emplace<1>(std::forward<U>(value));
  }

  void unhandled_exception() { outcome_.template emplace<2>(std::current_exception()); }

  T Take() {
    if (outcome_.index() == 2) {
      std::rethrow_exception(std::get<2>(outcome_));
    }
    return std::move(std::get<1>(outcome_));
  }

 private:
  std::variant<std::monostate, T, std::exception_ptr> outcome_;
};

template <>
class TaskPromise<void> : public TaskPromiseBase {
 public:
  Task<void> get_return_object();

  void return_void() {}

  void unhandled_exception() { exception_ = std::current_exception(); }

  void Take() {
    if (exception_) {
      std::rethrow_exception(exception_);
    }
  }

 private:
  std::exception_ptr exception_;
};

}  // namespace internal

/// A coroutine that has not started. It runs when it is awaited, once, and its
/// frame is freed with this object. `T`: void or a movable value.
/// Thread: the loop's.
template <class T>
class [[nodiscard]] Task {
 public:
  using promise_type = internal::TaskPromise<T>;

  Task() = default;

  explicit Task(std::coroutine_handle<promise_type> frame) : frame_(frame) {}

  Task(Task&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}

  Task& operator=(Task&& other) noexcept {
    Task(std::move(other)).swap(*this);
    return *this;
  }

  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  ~Task() {
    if (frame_) {
      frame_.destroy();
    }
  }

  void swap(Task& other) noexcept { std::swap(frame_, other.frame_); }

  explicit operator bool() const { return static_cast<bool>(frame_); }

  class Awaiter {
   public:
    explicit Awaiter(std::coroutine_handle<promise_type> frame) : frame_(frame) {}

    bool await_ready() const noexcept { return false; }

    bool await_suspend(std::coroutine_handle<> waiter) const {
      return frame_.promise().StartFrom(frame_, waiter);
    }

    T await_resume() const { return frame_.promise().Take(); }

   private:
    std::coroutine_handle<promise_type> frame_;
  };

  /// Owner: the task keeps its frame, so it must live until the await is over
  /// (a temporary does).
  Awaiter operator co_await() && {
    assert(frame_);
    return Awaiter(frame_);
  }

 private:
  std::coroutine_handle<promise_type> frame_;
};

namespace internal {

template <class T>
Task<T> TaskPromise<T>::get_return_object() {
  return Task<T>(std::coroutine_handle<TaskPromise<T>>::from_promise(*this));
}

inline Task<void> TaskPromise<void>::get_return_object() {
  return Task<void>(std::coroutine_handle<TaskPromise<void>>::from_promise(*this));
}

/// A coroutine in a list of waiters; lives in the awaiter, so in the frame.
struct Waiter {
  std::coroutine_handle<> handle;
  bool queued = false;
};

/// First come, first woken. Owner: waiters are borrowed.
class WaiterList {
 public:
  void Add(Waiter& waiter);
  /// Takes a waiter out that shall not be woken from here.
  void Remove(Waiter& waiter);
  /// Wakes the first one; false where there is none.
  bool WakeOne();
  void WakeAll();

  bool empty() const { return waiters_.empty(); }

 private:
  std::vector<Waiter*> waiters_;
};

}  // namespace internal

/// Runs `task` now until it first waits, and on its own from there on; `done`
/// is called when it has ended. An exception that leaves `task` is logged to
/// stderr and ends the process. Thread: the loop's.
void Start(Task<void> task, std::move_only_function<void()> done = {});

/// Detached tasks that somebody must be able to wait for. Thread: the loop's.
class Scope {
 public:
  Scope();
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  /// Starts `task` as `Start` does. `name` is for `names()`.
  void Spawn(std::string name, Task<void> task);

  /// Ends when nothing of the scope runs. Again: allowed, also at once.
  Task<void> Join();

  size_t running() const;
  /// Of the tasks that run, in the order of their start.
  std::vector<std::string> names() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// An event that happens once and has a value. Any number may wait, before and
/// after. A copy is the same event. Destroying the last copy unset strands
/// who waits. Thread: the loop's.
template <class T>
class OneShot {
 public:
  using Stored = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

  OneShot() : state_(std::make_shared<State>()) {}

  /// Sets the value and wakes who waits. Again: ignored, the first value stays.
  template <class... Args>
  void Set(Args&&... value) {
    if (!state_->value) {
      state_->value.emplace(std::forward<Args>(value)...);
      state_->waiters.WakeAll();
    }
  }

  bool is_set() const { return state_->value.has_value(); }

  /// The value; `is_set()` must hold.
  Stored& value() const { return *state_->value; }  // NOLINT(bugprone-unchecked-optional-access)

  class Awaiter;
  class DeadlineAwaiter;

  /// `co_await` gives `T&`, to copy from, or to move from where there is one
  /// waiter: `auto x = std::move(co_await event.Wait());`.
  Awaiter Wait() const { return Awaiter(state_); }

  /// `co_await` gives whether it was set in time.
  DeadlineAwaiter WaitFor(Loop& loop, Duration deadline) const {
    return DeadlineAwaiter(state_, loop, deadline);
  }

 private:
  struct State {
    std::optional<Stored> value;
    internal::WaiterList waiters;
  };

  std::shared_ptr<State> state_;
};

template <class T>
class OneShot<T>::Awaiter {
 public:
  explicit Awaiter(std::shared_ptr<State> state) : state_(std::move(state)) {}

  bool await_ready() const noexcept { return state_->value.has_value(); }

  void await_suspend(std::coroutine_handle<> self) {
    waiter_.handle = self;
    state_->waiters.Add(waiter_);
  }

  std::conditional_t<std::is_void_v<T>, void, std::add_lvalue_reference_t<T>> await_resume() const {
    if constexpr (!std::is_void_v<T>) {
      return *state_->value;  // NOLINT(bugprone-unchecked-optional-access): it is set by now.
    }
  }

 private:
  std::shared_ptr<State> state_;
  internal::Waiter waiter_;
};

template <class T>
class OneShot<T>::DeadlineAwaiter {
 public:
  DeadlineAwaiter(std::shared_ptr<State> state, Loop& loop, Duration deadline)
      : state_(std::move(state)), loop_(loop), deadline_(deadline) {}

  bool await_ready() const noexcept { return state_->value.has_value(); }

  void await_suspend(std::coroutine_handle<> self) {
    waiter_.handle = self;
    state_->waiters.Add(waiter_);
    timer_ = loop_.After(deadline_, [this] {
      if (waiter_.queued) {
        state_->waiters.Remove(waiter_);
        ResumeSoon(waiter_.handle);
      }
    });
  }

  bool await_resume() {
    loop_.Cancel(timer_);
    return state_->value.has_value();
  }

 private:
  std::shared_ptr<State> state_;
  Loop& loop_;
  Duration deadline_;
  internal::Waiter waiter_;
  TimerId timer_;
};

/// The event's value, or nothing where it is not set within `deadline`. A
/// copy of the value where it can be copied, else the value itself. For
/// `OneShot<void>` an engaged optional says "set". The event may be destroyed
/// meanwhile only after `Set`.
template <class T>
Task<std::optional<typename OneShot<T>::Stored>> WithDeadline(Loop& loop, Duration deadline,
                                                              OneShot<T>& event) {
  auto awaiter = event.WaitFor(loop, deadline);
  // Keeps the value. NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
  OneShot<T> shared = event;
  if (!co_await awaiter) {
    co_return std::nullopt;
  }
  if constexpr (std::is_copy_constructible_v<typename OneShot<T>::Stored>) {
    co_return shared.value();
  } else {
    co_return std::move(shared.value());
  }
}

/// A lock for one operation at a time, granted in the order of asking.
/// Thread: the loop's.
class Slot {
  struct State;

 public:
  /// Owns the slot until destroyed; outlives the `Slot` itself harmlessly.
  class Hold {
   public:
    Hold() = default;

    explicit Hold(std::shared_ptr<State> state) : state_(std::move(state)) {}

    Hold(Hold&& other) noexcept : state_(std::move(other.state_)) {}

    Hold& operator=(Hold&& other) noexcept {
      if (this != &other) {
        Release();
        state_ = std::move(other.state_);
      }
      return *this;
    }

    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

    ~Hold() { Release(); }

    void Release();

    explicit operator bool() const { return state_ != nullptr; }

   private:
    std::shared_ptr<State> state_;
  };

  class Awaiter {
   public:
    explicit Awaiter(std::shared_ptr<State> state) : state_(std::move(state)) {}

    bool await_ready() const noexcept;
    void await_suspend(std::coroutine_handle<> self);

    Hold await_resume() { return Hold(std::move(state_)); }

   private:
    std::shared_ptr<State> state_;
    internal::Waiter waiter_;
  };

  Slot();

  /// `auto hold = co_await slot.Acquire();`
  [[nodiscard]] Awaiter Acquire() const { return Awaiter(state_); }

  /// The slot if it is free now, else an empty hold.
  [[nodiscard]] Hold TryAcquire() const;

  bool held() const;

 private:
  struct State {
    bool held = false;
    internal::WaiterList waiters;
  };

  std::shared_ptr<State> state_;
};

/// Waits. `loop` must outlive the wait, here and below.
Task<void> Sleep(Loop& loop, Duration delay);

/// Waits until one of `events` (EPOLLIN, ...), an error or a hang-up holds for
/// `fd`, and gives what holds.
/// Errors: DEADLINE_EXCEEDED; `Duration::max()` is no deadline.
/// Owner: `fd` is borrowed and must stay open; `shutdown` ends the wait early.
Task<Result<uint32_t>> Ready(Loop& loop, int fd, uint32_t events, Duration deadline);

}  // namespace gantry::async
