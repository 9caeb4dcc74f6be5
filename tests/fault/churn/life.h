// SPDX-License-Identifier: Apache-2.0
//
// One of many lives: chosen by its number, and known in advance to the last byte.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <gantry/error.h>

#include "tests/fault/churn/task.h"

namespace gantry::fault {

/// What kind of life it is.
enum class ChurnKind {
  kEnds,       ///< By itself.
  kKilled,     ///< By a signal.
  kExec,       ///< With an exec in it.
  kPaused,     ///< Paused, resumed, killed.
  kReads,      ///< Says what it is told.
  kTerminal,   ///< By itself, on a terminal.
  kAbandoned,  ///< Nobody waits for it: the shim's `delete` ends it.
};
inline constexpr int kChurnKinds = 7;

struct ChurnLife {
  std::string id;
  ChurnKind kind = ChurnKind::kEnds;
  /// Of what ends by itself, and of the exec.
  int code = 0;
  int lines = 0;
};

/// The same for the same seed and number.
ChurnLife ChooseLife(unsigned seed, int number, const std::string& id);

/// Topics that containerd hears, in order. Those of one that is abandoned end with its start.
std::vector<std::string> TopicsOf(const ChurnLife& chosen);

/// Lives it; fails the test where anything is not as planned. `step` is called after
/// each call. Thread: any.
void Live(const e2e::Node& node, const std::string& rootfs, const ChurnLife& chosen,
          const std::function<void()>& step);

}  // namespace gantry::fault
