// SPDX-License-Identifier: Apache-2.0
//
// The operator's API, read by gantryctl: proto/gantry/operator.proto.
#pragma once

#include <gantry/error.h>

#include "core/async/worker_pool.h"
#include "core/backend/backends.h"
#include "core/backend/context.h"
#include "core/events/publisher.h"
#include "core/rpc/method_table.h"

namespace gantry::engine {

class Tasks;

/// What takes time is done there.
struct Workers {
  async::Loop& loop;
  async::WorkerPool& pool;
};

/// Everything given must outlive `table`. Thread: loop.
Status RegisterOperator(rpc::MethodTable& table, const Workers& workers, const Tasks& tasks,
                        const backend::Backends& backends, const events::Publishers& publishers,
                        const backend::Counters& counters);

}  // namespace gantry::engine
