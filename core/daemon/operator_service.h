// SPDX-License-Identifier: Apache-2.0
//
// The operator's API, read by gantryctl: proto/gantry/operator.proto.
#pragma once

#include <gantry/error.h>

#include "core/events/publisher.h"
#include "core/os/worker_pool.h"
#include "core/plugin/backends.h"
#include "core/rpc/method_table.h"
#include "core/sandbox/context.h"
#include "core/task/service.h"

namespace gantry::daemon {

/// What takes time is done there.
struct Workers {
  os::Loop& loop;
  os::WorkerPool& pool;
};

/// Everything given must outlive `table`. Thread: loop.
Status RegisterOperator(rpc::MethodTable& table, const Workers& workers, const task::Service& tasks,
                        const plugin::Backends& backends, const events::Publishers& publishers,
                        const sandbox::Counters& counters);

}  // namespace gantry::daemon
