// SPDX-License-Identifier: Apache-2.0
//
// Where calls into backends run, and what becomes of one that does not return.
//
// Each backend has workers of its own, so one that blocks in every call takes
// nobody else's; and of these one sandbox gets a part only, so that one that hangs leaves
// some to the others (`limits.max_workers_per_sandbox`). What waits for the clients of
// streams and for loggers has workers of its own, too. A call that is still under way some time
// after its deadline is logged, and whoever waits for an answer about its sandbox gets
// DEADLINE_EXCEEDED once the limit of his own call has passed, with the backend's name. The call
// itself goes on, and what waits for it goes on when it returns: a backend's
// object gets one call at a time, whatever the callers were told.
//
// Such a call's worker is lost, and another takes its place; it is not lost to its sandbox,
// which has that many less. Where none is left to it, its calls are refused with UNAVAILABLE. Two
// workers more are for what must not wait behind calls that hang: one for short calls of the
// sandbox (signals, figures, ends), one for what its backend watches.
#pragma once

#include <chrono>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include <gantry/format.h>

#include "core/async/co.h"
#include "core/async/worker_pool.h"
#include "core/rpc/method_table.h"
#include "core/task/backend_call.h"
#include "core/task/parts.h"
#include "core/trace/recorder.h"

namespace gantry::task {

/// Of calls that may take as long as they take.
inline constexpr std::chrono::nanoseconds kNoLimit = std::chrono::nanoseconds::max();

/// Thread: loop.
class BackendCalls {
 public:
  explicit BackendCalls(const Parts& parts) : parts_(parts) {}

  BackendCalls(const BackendCalls&) = delete;
  BackendCalls& operator=(const BackendCalls&) = delete;
  ~BackendCalls() = default;

  /// That backend's workers. They live as long as this.
  async::WorkerPool& PoolOf(const std::string& backend);

  /// For what opens and closes the streams of processes, which may wait for others.
  async::WorkerPool& StreamPool();

  /// Which call it is, for who wants to know what hangs.
  struct Name {
    std::string backend;
    /// Of the group that its sandbox belongs to.
    std::string address{};
    /// "start 'c1'".
    std::string what{};
    /// Of that sandbox.
    async::AccountPtr account{};
    /// The parts of `what`, and where that is: "start", "c1" or "c1/e1", "k8s.io".
    std::string verb{};
    std::string whose{};
    std::string ns{};
  };

  /// Calls `function` on a worker of the backend.
  template <class F>
  async::Task<std::invoke_result_t<F&>> Run(Name name, Deadline deadline, F function,
                                            async::Refusable refusable = async::Refusable::kYes,
                                            async::CallKind kind = async::CallKind::kLong) {
    async::WorkerPool& pool = PoolOf(name.backend);
    const std::string backend = name.backend;
    const std::string what = name.what;
    async::AccountPtr account = name.account;
    async::CallTerms terms = TermsOf(name, deadline, refusable, kind);
    trace::OpenStep step = BeginStep(name);
    std::chrono::steady_clock::time_point at_work = step.begun();
    const Ticket ticket(*this, std::move(name), deadline);
    auto result = co_await pool.RunFor(
        std::move(account),
        [&] {
          at_work = std::chrono::steady_clock::now();
          const ChildCheck check(backend, what);
          return function();
        },
        std::move(terms));
    step.Waited(at_work - step.begun()).Ended(result);
    co_return result;
  }

  /// `function(call)`, by the call's deadline; `verb` as in "start". Without a `kind` it is a
  /// short one if it must not be refused: signals, and what ends something.
  template <class F>
  async::Task<std::invoke_result_t<F&, const BackendCall&>> Run(
      std::string_view verb, BackendCall call, F function,
      async::Refusable refusable = async::Refusable::kYes,
      std::optional<async::CallKind> kind = {}) {
    const BackendCall kept = std::move(call);
    Name name = kept.entry ? NameOf(*kept.entry, verb, kept.whose) : Name();
    if (refusable == async::Refusable::kNo && !kind) {
      kind = async::CallKind::kShort;
      // Who asks can ask again: no more than one of them shall hang.
      refusable = async::Refusable::kUnlessHung;
    }
    co_return co_await Run(
        std::move(name), kept.deadline, [&kept, &function] { return function(kept); }, refusable,
        kind.value_or(async::CallKind::kLong));
  }

  /// How many calls, of backends and of what has to do with streams, run or wait for a
  /// worker.
  size_t under_way() const;

  /// Workers of that backend, and of all kinds, whose calls hang.
  size_t LostOf(const std::string& backend) const;
  size_t lost() const;

  /// The workers of each backend, by its name, and those for streams, where there are any.
  std::map<std::string, async::WorkerPool::Counts> PoolsOfBackends() const;
  async::WorkerPool::Counts StreamCounts() const;

  /// Of a call of that sandbox, or of a container in it; `verb` as in "start".
  static Name NameOf(const SandboxEntry& entry, std::string_view verb, std::string_view object);

  /// Runs what serves `call`. The caller is answered when that has taken `limit` (or
  /// his own, where that is shorter) and a backend hangs in his sandbox. `call` lives
  /// as long as the task.
  template <class T>
  async::Task<T> Watched(async::Task<T> task, const rpc::CallContext& call,
                         std::chrono::nanoseconds limit) {
    const Watch watch(*this, call, limit);
    co_return co_await std::move(task);
  }

 private:
  class Ticket;

  /// Of the processes that a backend starts by itself, on its worker, and leaves to
  /// the engine, which knows nothing of them.
  class ChildCheck {
   public:
    ChildCheck(const std::string& backend, const std::string& what);
    ChildCheck(const ChildCheck&) = delete;
    ChildCheck& operator=(const ChildCheck&) = delete;
    ~ChildCheck();

   private:
    const std::string& backend_;
    const std::string& what_;
  };

  class Watch {
   public:
    Watch(BackendCalls& calls, const rpc::CallContext& call, std::chrono::nanoseconds limit);
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    ~Watch();

   private:
    friend class BackendCalls;
    /// A call of a backend hangs in its sandbox.
    void OnOverdue(const Ticket& ticket);
    void Expire();
    void Answer(const Ticket& ticket) const;

    BackendCalls& calls_;
    const rpc::CallContext& call_;
    /// When the caller is answered, if a backend hangs then.
    Deadline due_ = backend::CallDeadline::kNone;
    /// Only while one hangs.
    async::TimerId timer_;
    std::list<Watch*>::iterator here_;
  };

  /// A call under way.
  class Ticket {
   public:
    Ticket(BackendCalls& calls, Name name, Deadline deadline);
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;
    ~Ticket();

    std::string Complaint() const;

   private:
    friend class BackendCalls;
    void Expire();

    BackendCalls& calls_;
    const Name name_;
    const Deadline since_;
    async::TimerId timer_;
    bool overdue_ = false;
    /// Only where it is overdue.
    std::list<Ticket*>::iterator here_;
  };

  /// None of what is asked again and again.
  trace::OpenStep BeginStep(const Name& name) const;
  async::CallTerms TermsOf(const Name& name, Deadline deadline, async::Refusable refusable,
                           async::CallKind kind) const;
  /// When a backend that keeps to `deadline` has had time to say so.
  async::Duration UntilOverdue(Deadline deadline) const;
  /// A call that hangs in that group's sandbox; null: none.
  const Ticket* FindOverdue(const std::string& address) const;

  /// By the address of the group: nobody looks through another's.
  template <class T>
  using ByGroup = std::unordered_map<std::string, std::list<T*>>;

  template <class T>
  static void Remove(ByGroup<T>& all, const std::string& address,
                     typename std::list<T*>::iterator here);

  const Parts& parts_;
  std::map<std::string, std::unique_ptr<async::WorkerPool>, std::less<>> pools_;
  std::unique_ptr<async::WorkerPool> streams_;
  size_t under_way_ = 0;
  ByGroup<Ticket> overdue_;
  ByGroup<Watch> watches_;
};

}  // namespace gantry::task
