// SPDX-License-Identifier: Apache-2.0
//
// Watches of backends: the loop sees that a descriptor is readable, a worker
// runs the backend's callback, and only then the loop looks again.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <gantry/context.h>

#include "core/async/account.h"
#include "core/async/loop.h"
#include "core/async/worker_pool.h"

namespace gantry::backend {

/// Whose a watch is.
struct WatchOwner {
  /// For the log.
  std::string backend;
  /// Who takes turns at the workers for it, and what its calls cost. Null: nobody.
  async::AccountPtr account{};
  /// For who is told that a call of it hangs.
  std::string what{};
};

/// Starts a watch. Thread: any but the loop's.
std::unique_ptr<Watch> WatchOnPool(async::Loop& loop, async::WorkerPool& pool, WatchOwner owner,
                                   int fd, std::function<void()> ready);

}  // namespace gantry::backend
