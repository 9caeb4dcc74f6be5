// SPDX-License-Identifier: Apache-2.0
#include "core/backend/retired.h"

#include <chrono>
#include <deque>
#include <utility>

#include <gantry/toolkit/sync/mutex.h>

#include "core/backend/context.h"

namespace gantry::backend {
namespace {

using Clock = std::chrono::steady_clock;

struct One {
  std::shared_ptr<void> context;
  Clock::time_point since;
};

struct Retired {
  /// Guards `contexts`: objects of backends end on workers, too.
  Mutex mutex;
  std::deque<One> contexts GANTRY_GUARDED_BY(mutex);
};

Retired& All() {
  // Never destroyed: threads of plugins run to the end of the process.
  static auto* const all = new Retired();
  return *all;
}

}  // namespace

void Retire(std::shared_ptr<void> context) {
  if (!context) {
    return;
  }
  Retired& all = All();
  std::shared_ptr<void> oldest;
  const MutexLock lock(all.mutex);
  all.contexts.push_back({std::move(context), Clock::now()});
  if (all.contexts.size() > kMaxRetired) {
    oldest = std::move(all.contexts.front().context);
    all.contexts.pop_front();
  }
}

size_t ForgetRetired(std::chrono::nanoseconds age) {
  const Clock::time_point last = Clock::now() - age;
  Retired& all = All();
  std::deque<One> old;
  const MutexLock lock(all.mutex);
  while (!all.contexts.empty() && all.contexts.front().since <= last) {
    old.push_back(std::move(all.contexts.front()));
    all.contexts.pop_front();
  }
  if (all.contexts.empty()) {
    all.contexts.shrink_to_fit();
  }
  return all.contexts.size();
}

}  // namespace gantry::backend
