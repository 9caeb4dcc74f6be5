// SPDX-License-Identifier: Apache-2.0
//
// What the Task service, the Sandbox service and the recovery work with: one of each, made
// together, since most need others of them.
#pragma once

#include "core/metrics/figures.h"
#include "core/task/backend_calls.h"
#include "core/task/backend_proxy.h"
#include "core/task/call_meter.h"
#include "core/task/console_signals.h"
#include "core/task/containers.h"
#include "core/task/exit_relay.h"
#include "core/task/instances.h"
#include "core/task/left_streams.h"
#include "core/task/members.h"
#include "core/task/parts.h"
#include "core/task/process_factory.h"
#include "core/task/records.h"
#include "core/task/recovery_order.h"
#include "core/task/remover.h"
#include "core/task/replayed_starts.h"
#include "core/task/sandboxes.h"

namespace gantry::task {

class Pods;

/// Thread: loop.
struct Components {
  /// Owner: `pods` outlives it.
  Components(const Parts& from, const Pods& pods);
  Components(const Components&) = delete;
  Components& operator=(const Components&) = delete;
  ~Components();

  const Parts parts;
  metrics::Figures figures;
  Records records;
  BackendCalls calls;
  BackendProxy proxy;
  ExitRelay exits;
  Instances instances;
  Sandboxes sandboxes;
  const CallMeter meter;
  RecoveryOrder order;
  Members members;
  Remover remover;
  ConsoleSignals console_signals;
  ProcessFactory factory;
  ReplayedStarts replays;
  LeftStreams left_streams;
  /// The last, so that they go first: what they have uses the others.
  Containers containers;
};

}  // namespace gantry::task
