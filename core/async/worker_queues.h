// SPDX-License-Identifier: Apache-2.0
//
// Whose calls a pool's threads make next. Each account has a queue: its calls that wait, and
// how many of them run. AccountQueues with calls that could be made take turns.
//
// In a queue there are three kinds of calls, and each kind leaves something to the next: what
// may take long never keeps an account from being signalled, and neither keeps a backend
// from hearing what it waits for. A call that has not returned long after its time keeps its
// place in the queue, so that who hangs hangs himself; when such calls hold every place there
// is for a kind, calls of that kind are refused.
//
// Thread: any, one at a time: the pool's mutex guards it.
#pragma once

#include <array>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <vector>

#include <gantry/error.h>

#include "core/async/account.h"
#include "core/async/loop.h"

namespace gantry::async {

/// Whether a call may be refused. What must not be for want of room follows from something
/// that has a limit of its own.
enum class Refusable {
  kYes,
  /// Only where its account's calls hang.
  kUnlessHung,
  kNo,
};

/// What a call may have to wait for, and so what others leave to it.
enum class CallKind {
  /// May take as long as it takes: starts, checkpoints, files.
  kLong,
  /// Is done at once where nothing is wrong: signals, figures, ends.
  kShort,
  /// Tells a backend what its other calls may wait for.
  kWatch,
};

inline constexpr TimePoint kNeverHangs = TimePoint::max();

/// Beside what is called.
struct CallTerms {
  Refusable refusable = Refusable::kYes;
  CallKind kind = CallKind::kLong;
  /// It counts as one that hangs from then on. Without: by the pool's own limit.
  TimePoint hangs_at = kNeverHangs;
  /// For whoever is told that it hangs: "start 'c1'".
  std::string what{};
};

struct PoolLimits {
  int threads = 1;
  /// Calls that wait, of all.
  size_t queued = 0;
  /// Of these, for one account. One thread at least is left to the others.
  int threads_of_one = 256;
  size_t queued_of_one = SIZE_MAX;
  /// Beyond `threads_of_one`: left to short calls, and to watches. So many more `threads` keep
  /// one for the others.
  int more_for_short = 0;
  int more_for_watches = 0;
  /// So many threads there are at most, with those that take the place of others whose calls
  /// take longer than `slow_after` while somebody waits. Not more than `threads`: none.
  int most_threads = 0;
  Duration slow_after = Duration::max();
  /// Of calls that do not say when they hang.
  Duration hangs_after = Duration::max();
  /// A call hangs. Thread: loop.
  std::function<void(const std::string& what)> on_lost{};
};

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

  enum class Phase { kQueued, kRunning, kDone };

  std::coroutine_handle<> waiter;
  /// For whom; null: for nobody.
  AccountPtr account;
  CallTerms terms;
  /// The loop's.
  TimerId hang_timer;

  // The pool's, and guarded by its mutex.
  Phase phase = Phase::kQueued;
  TimePoint begun{};
  /// Another thread works in its thread's place.
  bool replaced = false;
  bool lost = false;

 protected:
  ~PoolJob() = default;
};

}  // namespace internal

class WorkerQueues {
 public:
  /// `threads_of_one` leaves one of the threads to others, where there are two.
  explicit WorkerQueues(const PoolLimits& limits);

  /// Errors: kUnavailable: its account's calls hang; kResourceExhausted: so many wait already.
  Status CheckRoom(const internal::PoolJob& job) const;

  void Enqueue(internal::PoolJob& job);
  /// The next one, which runs from now on. There must be one: `takeable`.
  internal::PoolJob& Dequeue();

  /// What has to be known of a call that has returned.
  struct Ran {
    const Account* account = nullptr;
    CallKind kind = CallKind::kLong;
    bool lost = false;
  };

  void Done(const Ran& ran);

  /// A call that runs hangs. Those that wait and are to be refused because of it: they wait no
  /// more.
  std::vector<internal::PoolJob*> MarkLost(internal::PoolJob& job);
  /// Why.
  Error Refusal(const internal::PoolJob& job) const;

  /// Takes out all that wait.
  std::vector<internal::PoolJob*> Clear();

  /// Calls that wait, how many of them could be taken now, those that run, and those that
  /// hang.
  size_t queued() const { return queued_; }

  size_t takeable() const { return takeable_; }

  size_t running() const { return running_; }

  size_t lost() const { return lost_; }

 private:
  static constexpr size_t kKinds = 3;
  using PerKind = std::array<size_t, kKinds>;

  /// The calls for one account, or those for nobody.
  struct AccountQueue {
    std::array<std::list<internal::PoolJob*>, kKinds> waiting;
    PerKind running{};
    /// Of those that run.
    PerKind lost{};
    /// So many of a kind and those before it run at a time.
    PerKind most{};
    /// One that hangs.
    std::string hung;
    /// In `ready_`.
    bool waits = false;

    size_t queued() const;
    size_t takeable() const;
    bool CanTake(size_t kind) const;
    bool HangsFor(size_t kind) const;
    bool IsEmpty() const;
  };

  const AccountQueue* Find(const internal::PoolJob& job) const;
  void LineUp(const Account* account, AccountQueue& queue);

  const PoolLimits limits_;
  PerKind most_of_one_{};
  /// Those with calls that wait or run.
  std::map<const Account*, AccountQueue> queues_;
  /// Those with calls that could be taken; the first is next.
  std::deque<const Account*> ready_;
  size_t queued_ = 0;
  size_t takeable_ = 0;
  size_t running_ = 0;
  size_t lost_ = 0;
};

}  // namespace gantry::async
