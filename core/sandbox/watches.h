// SPDX-License-Identifier: Apache-2.0
//
// Watches of backends: the loop sees that a descriptor is readable, a worker
// runs the backend's callback, and only then the loop looks again.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <gantry/context.h>

#include "core/os/loop.h"
#include "core/os/worker_pool.h"

namespace gantry::sandbox {

/// Starts a watch. Thread: any but the loop's.
/// `backend`: whose it is, for the log.
std::unique_ptr<Watch> WatchOnPool(os::Loop& loop, os::WorkerPool& pool, std::string backend,
                                   int fd, std::function<void()> ready);

}  // namespace gantry::sandbox
