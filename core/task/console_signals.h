// SPDX-License-Identifier: Apache-2.0
//
// Signals of consoles that are nobody's controlling terminal here: typed by a user,
// or made by a resize. They wait at the process's `StdioHost` and are passed on to its
// backend one after the other, beside all other calls.
#pragma once

#include <cstdint>

#include "core/async/co.h"
#include "core/task/container.h"

namespace gantry::task {

class BackendProxy;
struct Parts;

/// As with the runc shim: whom to signal is not known before the start of an exec is done.
async::Task<void> AwaitExecStart(TaskProcessPtr process);

/// Thread: loop.
class ConsoleSignals {
 public:
  /// Owner: both outlive it.
  ConsoleSignals(const Parts& parts, BackendProxy& proxy) : parts_(parts), proxy_(proxy) {}

  /// The process's host has some. Null: it has gone.
  void OnConsoleSignals(ContainerPtr container, TaskProcessPtr process);

 private:
  async::Task<void> SendConsoleSignals(ContainerPtr container, TaskProcessPtr process);
  async::Task<void> SendConsoleSignal(ContainerPtr container, TaskProcessPtr process,
                                      uint32_t signal);

  const Parts& parts_;
  BackendProxy& proxy_;
};

}  // namespace gantry::task
