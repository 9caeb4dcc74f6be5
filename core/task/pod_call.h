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
#include "core/task/backend_calls.h"
#include "core/task/sandboxes.h"

namespace gantry::task {

/// `function(sandbox)` on a worker, with a deadline; exceptions are errors.
template <class F>
os::Task<std::invoke_result_t<F&, Sandbox&>> CallSandbox(BackendCalls& calls, std::string_view verb,
                                                         SandboxEntryPtr entry, Deadline deadline,
                                                         F function) {
  const std::shared_ptr<Sandbox> sandbox = entry ? entry->sandbox : nullptr;
  if (!sandbox) {
    co_return Fail(Code::kUnavailable, "its backend is not there: unavailable");
  }
  co_return co_await calls.Run(BackendCalls::NameOf(*entry, verb, entry->id.str()), deadline,
                               [&]() -> std::invoke_result_t<F&, Sandbox&> {
                                 const sandbox::CallDeadline limit(deadline);
                                 return plugin::GuardedCall(entry->backend_name,
                                                            [&] { return function(*sandbox); });
                               });
}

inline std::chrono::milliseconds LeftUntil(Deadline deadline) {
  return std::max(std::chrono::milliseconds(0),
                  std::chrono::duration_cast<std::chrono::milliseconds>(
                      deadline - sandbox::CallDeadline::Clock::now()));
}

}  // namespace gantry::task
