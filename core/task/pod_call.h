// SPDX-License-Identifier: Apache-2.0
//
// A worker's side of the Sandbox service: calls of a pod's backend.
#pragma once

#include <algorithm>
#include <chrono>
#include <type_traits>
#include <utility>

#include <gantry/sandbox.h>

#include "core/plugin/guard.h"
#include "core/task/backend_call.h"
#include "core/task/sandboxes.h"

namespace gantry::task {

/// `function(sandbox)` for a worker, with a deadline; exceptions are errors.
template <class F>
auto OnSandbox(const SandboxEntryPtr& entry, Deadline deadline, F function) {
  return [entry, sandbox = entry ? entry->sandbox : nullptr, deadline,
          function = std::move(function)]() -> std::invoke_result_t<F, Sandbox&> {
    if (!sandbox) {
      return Fail(Code::kUnavailable, "its backend is not there: unavailable");
    }
    const sandbox::CallDeadline limit(deadline);
    return plugin::GuardedCall(entry->backend_name, [&] { return function(*sandbox); });
  };
}

inline std::chrono::milliseconds LeftUntil(Deadline deadline) {
  return std::max(std::chrono::milliseconds(0),
                  std::chrono::duration_cast<std::chrono::milliseconds>(
                      deadline - sandbox::CallDeadline::Clock::now()));
}

}  // namespace gantry::task
