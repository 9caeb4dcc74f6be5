// SPDX-License-Identifier: Apache-2.0
//
// The event loop of the keeper, the engine and the IO threads: descriptors
// (epoll), timers and functions posted from other threads. It knows nothing of
// coroutines; `co.h` builds on it.
//
// A callback may do anything to the loop but destroy it: end its own watch or
// timer, end those of others, close a descriptor and watch a new one that got
// the same number. Events that the kernel had already reported for an ended
// watch are dropped.
#pragma once

#include <atomic>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <source_location>
#include <thread>
#include <unordered_map>
#include <vector>

#include <gantry/toolkit/sync/mutex.h>
#include <gantry/unique_fd.h>

#include "core/async/clock.h"

struct epoll_event;

namespace gantry::async {

/// Names a timer for its loop's lifetime. Default: no timer.
struct TimerId {
  TimePoint due{};
  uint64_t serial = 0;

  explicit operator bool() const { return serial != 0; }

  auto operator<=>(const TimerId&) const = default;
};

/// Names a watch for its loop's lifetime. Default: no watch.
struct WatchId {
  uint64_t serial = 0;

  explicit operator bool() const { return serial != 0; }

  auto operator<=>(const WatchId&) const = default;
};

/// Thread: one thread runs the loop and makes all calls; `Post` and `Stop` may
/// come from any thread. A process without an epoll instance cannot go on, so
/// the constructor ends the process where the kernel refuses one.
class Loop {
 public:
  using Function = std::move_only_function<void()>;
  using WatchFunction = std::move_only_function<void(uint32_t)>;
  using SlowTurnFunction = std::move_only_function<void(Duration)>;

  /// `clock` must outlive the loop.
  explicit Loop(const Clock& clock = SteadyClock());
  /// Drops what is still watched, timed or posted, without calling it.
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// Turns until `Stop`.
  void Run();

  /// Makes the current `Run`, or else the next, return after its turn.
  /// Thread: any.
  void Stop();

  /// One turn: waits up to `max` (negative: without limit) for something to do,
  /// then does all that is due. Returns whether anything was called.
  bool RunOnce(std::chrono::milliseconds max);

  /// Calls `function` on the loop's thread, in the order of posting. What a
  /// posted function posts is called in the next turn. Thread: any.
  void Post(Function function);

  /// Calls `function` once, not before `delay` has passed. A delay too long to
  /// add to the clock means never. Again: `Cancel` of a timer that has run is
  /// harmless.
  TimerId After(Duration delay, Function function);
  void Cancel(TimerId timer);

  /// When the next timer is due; nothing where there is none. One in the past counts.
  std::optional<TimePoint> NextDue() const;

  /// The time that the timers go by. Thread: any.
  TimePoint Now() const { return clock_.Now(); }

  /// Calls `function(ready)` whenever one of `events` (EPOLLIN, EPOLLOUT,
  /// EPOLLRDHUP, EPOLLPRI), EPOLLERR or EPOLLHUP holds. One descriptor may have
  /// several watches. A descriptor that epoll refuses (a regular file: EPERM)
  /// counts as always ready for `events`; for any other refusal EPOLLERR is
  /// added, and the caller's next read or write tells the reason.
  /// Owner: `fd` is borrowed; end the watch before closing it.
  WatchId Watch(int fd, uint32_t events, WatchFunction function);

  /// Changes what is waited for. 0 pauses the watch wholly: EPOLLERR and
  /// EPOLLHUP are not reported either.
  void Rearm(WatchId watch, uint32_t events);

  /// After this the watch's function is not called. Again: harmless.
  void Unwatch(WatchId watch);

  /// Calls `function` with the length of each turn (without its waiting) that
  /// took `threshold` or longer.
  void SetSlowTurnObserver(Duration threshold, SlowTurnFunction function);

  /// Whether this is the thread that last ran the loop. Thread: any.
  bool IsLoopThread() const;

  /// Whether calls that are for the loop's thread may be made here: on the thread that turns it,
  /// or anywhere while none does. Thread: any.
  bool MayBeUsedHere() const { return !turns_ || IsLoopThread(); }

  /// At the head of what only the loop may call. Elsewhere it ends the process, and says where
  /// that was; with NDEBUG it does nothing. Thread: any.
  void AssertLoopThread(std::source_location where = std::source_location::current()) const {
    if constexpr (kChecksThreads) {
      if (!MayBeUsedHere()) {
        DieOffThread(where);
      }
    }
  }

  size_t watches() const { return watches_.size(); }

  size_t timers() const { return timers_.size(); }

 private:
  struct WatchEntry {
    int fd;
    uint32_t events;
    /// Set where epoll refused the descriptor: what to report every turn.
    uint32_t forced = 0;
    WatchFunction function;
  };

  /// One per descriptor that is known to epoll or has paused watches.
  struct Registration {
    /// Tells an event of this registration from one of an earlier owner of
    /// the same number.
    uint32_t generation = 0;
    bool armed = false;
    uint32_t mask = 0;
    std::vector<uint64_t> serials;
  };

#ifdef NDEBUG
  static constexpr bool kChecksThreads = false;
#else
  static constexpr bool kChecksThreads = true;
#endif

  [[noreturn]] static void DieOffThread(const std::source_location& where);
  int WaitMillis(std::chrono::milliseconds max);
  bool DispatchEvents(const epoll_event* events, int count);
  bool DispatchWatch(uint64_t serial, uint32_t ready);
  bool DispatchForced();
  bool DispatchTimers();
  bool DispatchPosted();
  void UpdateRegistration(int fd);
  void Arm(int fd, Registration& registration, uint32_t mask);
  void ForceWatches(const Registration& registration, uint32_t extra);

  const Clock& clock_;
  UniqueFd epoll_;
  UniqueFd wake_;
  std::atomic<bool> stop_ = false;
  std::atomic<std::thread::id> thread_{};
  /// A thread is in `Run` or `RunOnce`: `thread_`.
  std::atomic<bool> turns_ = false;

  uint64_t next_serial_ = 1;
  uint32_t next_generation_ = 1;
  std::unordered_map<uint64_t, WatchEntry> watches_;
  std::unordered_map<int, Registration> registrations_;
  std::vector<uint64_t> forced_;
  std::map<TimerId, Function> timers_;

  Duration slow_threshold_{};
  SlowTurnFunction on_slow_turn_;

  /// Guards `posted_`, and `waits_` while it is set.
  mutable Mutex mutex_;
  std::vector<Function> posted_ GANTRY_GUARDED_BY(mutex_);
  /// It waits, or is about to, and has seen that nothing is posted.
  std::atomic<bool> waits_ = false;
};

}  // namespace gantry::async
