// SPDX-License-Identifier: Apache-2.0
//
// Makes a process of a container as all else expects it: with its host for streams, and with the
// context that is lent to its backend.
#pragma once

#include <cstdint>
#include <string>

#include <gantry/ids.h>

#include "core/task/container.h"

namespace gantry::task {

class ConsoleSignals;
class ExitRelay;
struct Parts;

/// Thread: loop.
class ProcessFactory {
 public:
  /// Owner: all of them outlive it.
  ProcessFactory(const Parts& parts, ExitRelay& exits, ConsoleSignals& console_signals)
      : parts_(parts), exits_(exits), console_signals_(console_signals) {}

  /// `container` has its instance and its backend's name. It does not know the process yet.
  TaskProcessPtr NewProcess(Container& container, ExecId id);

 private:
  const Parts& parts_;
  ExitRelay& exits_;
  ConsoleSignals& console_signals_;
};

}  // namespace gantry::task
