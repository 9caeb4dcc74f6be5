// SPDX-License-Identifier: Apache-2.0
//
// The table. What it does not say is decided by the call itself: an exec in a paused container, a
// signal for an exec that is just starting.
#include "core/task/state.h"

#include <array>

namespace gantry::task {
namespace {

struct Row {
  Operation operation;
  std::string_view verb;
  bool created;
  bool running;
  bool paused;
  bool stopped;
};

// `stopped` says yes where the answer for an ended process is success or is
// decided elsewhere.
constexpr std::array kTable = {
    Row{Operation::kStart, "start", true, false, false, false},
    Row{Operation::kDelete, "delete", true, false, false, true},
    Row{Operation::kExec, "exec in", false, true, false, false},
    Row{Operation::kPause, "pause", false, true, false, false},
    Row{Operation::kResume, "resume", false, false, true, false},
    Row{Operation::kUpdate, "update", true, true, true, false},
    Row{Operation::kCheckpoint, "checkpoint", false, true, true, false},
    Row{Operation::kKill, "kill", true, true, true, false},
    Row{Operation::kResize, "resize", true, true, true, false},
};

bool Allows(const Row& row, State state) {
  switch (state) {
    case State::kCreated:
    case State::kStarting:
      return row.created;
    case State::kRunning:
      return row.running;
    case State::kPaused:
      return row.paused;
    case State::kStopped:
      return row.stopped;
    case State::kNone:
    case State::kCreating:
    case State::kDeleting:
      return false;
  }
  return false;
}

}  // namespace

Status CheckLegal(Operation operation, State state, std::string_view what) {
  for (const Row& row : kTable) {
    if (row.operation != operation || Allows(row, state)) {
      continue;
    }
    if (operation == Operation::kKill && state == State::kStopped) {
      return Fail(Code::kNotFound, "process already finished: not found");
    }
    if (state == State::kNone) {
      return Fail(Code::kNotFound, "container not created: not found");
    }
    return Fail(Code::kFailedPrecondition, "{} {}: it is {}: failed precondition", row.verb, what,
                store::StateName(state));
  }
  return {};
}

}  // namespace gantry::task
