// SPDX-License-Identifier: Apache-2.0
//
// The operator's API, read by gantryctl: proto/gantry/operator.proto.
#pragma once

#include <gantry/error.h>

#include "core/backend/backends.h"
#include "core/backend/context.h"
#include "core/engine/uses.h"
#include "core/events/publisher.h"
#include "core/rpc/method_table.h"

namespace gantry::engine {

class EventFeed;
class Tasks;

/// What it tells of. All of it must outlive the table.
struct OperatorFrom {
  Workers workers;
  const Tasks& tasks;
  const backend::Backends& backends;
  const events::Publishers& publishers;
  const backend::Counters& counters;
  EventFeed& feed;
};

/// Thread: loop.
Status RegisterOperator(rpc::MethodTable& table, const OperatorFrom& from);

}  // namespace gantry::engine
