// SPDX-License-Identifier: Apache-2.0
//
// A call into a backend, on a worker: what it works on stays alive while it
// runs, whatever happens to the container on the loop meanwhile. (Kill, Stats
// and Pids wait for nobody, so a Delete may come to its end while they run.)
// And it knows by when it should have ended.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include <gantry/toolkit/cgroup/cgroup.h>

#include "core/backend/call_deadline.h"
#include "core/backend/call_processes.h"
#include "core/backend/guard.h"
#include "core/rpc/method_table.h"

namespace gantry {
class Container;
class Process;
class Sandbox;
}  // namespace gantry

namespace gantry::task {

struct Container;
struct SandboxEntry;
struct TaskProcess;

using Deadline = backend::CallDeadline::Clock::time_point;

inline Deadline DeadlineIn(std::chrono::nanoseconds limit) {
  return backend::CallDeadline::Clock::now() + limit;
}

/// The configuration's limit, or the caller's own where that is shorter.
inline Deadline DeadlineOf(const rpc::CallContext& call, std::chrono::nanoseconds limit) {
  return DeadlineIn(call.timeout.count() > 0 ? std::min(call.timeout, limit) : limit);
}

inline std::chrono::milliseconds LeftUntil(Deadline deadline) {
  return std::max(std::chrono::milliseconds(0),
                  std::chrono::duration_cast<std::chrono::milliseconds>(
                      deadline - backend::CallDeadline::Clock::now()));
}

/// Thread: made on the loop, used on a worker.
struct BackendCall {
  /// Of `exec`, or of the container itself.
  explicit BackendCall(const Container& from, const TaskProcess* exec = nullptr);

  /// The backend is told that it has until then.
  BackendCall By(Deadline when) && {
    deadline = when;
    return std::move(*this);
  }

  /// What it spawns can be ended, and then the call is not made any more.
  BackendCall SpawningFor(std::shared_ptr<backend::CallProcesses> call) && {
    spawned = std::move(call);
    return std::move(*this);
  }

  /// `function(*container)`; exceptions are errors.
  template <class F>
  std::invoke_result_t<F, gantry::Container&> OnContainer(F&& function) const {
    return On(container.get(), std::forward<F>(function));
  }

  /// `function(*process)`.
  template <class F>
  std::invoke_result_t<F, gantry::Process&> OnProcess(F&& function) const {
    return On(process.get(), std::forward<F>(function));
  }

  // Destroyed from below: what is inside first.
  std::shared_ptr<SandboxEntry> entry;
  std::shared_ptr<Sandbox> sandbox;
  std::shared_ptr<gantry::Container> container;
  /// Null: not started, or its backend could not take it up again.
  std::shared_ptr<gantry::Process> process;
  cgroup::Cgroup cgroup;
  /// "c1", or "c1/e1" for an exec.
  std::string whose;
  Deadline deadline = backend::CallDeadline::kNone;
  /// Null: nobody asks.
  std::shared_ptr<backend::CallProcesses> spawned;

 private:
  const std::string& backend_name() const;

  template <class T, class F>
  std::invoke_result_t<F, T&> On(T* object, F&& function) const {
    if (!entry || object == nullptr) {
      return Fail(Code::kUnavailable, "its backend is not there: unavailable");
    }
    if (spawned) {
      GANTRY_CHECK_OK(spawned->Check());
    }
    const backend::CallDeadline limit(deadline);
    const backend::CallProcesses::Scope scope(spawned);
    return backend::GuardedCall(backend_name(), [&] { return std::forward<F>(function)(*object); });
  }
};

}  // namespace gantry::task
