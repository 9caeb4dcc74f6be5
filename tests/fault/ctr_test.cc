// SPDX-License-Identifier: Apache-2.0
//
// Containers of ctr: each operation, with each step that goes wrong.
#include "tests/fault/harness/ctr_fault_test.h"

namespace gantry::fault {
namespace {

using e2e::Words;

class FaultCtr : public CtrFaultTest {
 protected:
  static Step Simple(const char* operation, const Words& words, const std::string& id,
                     const std::string& state) {
    return {.operation = operation,
            .run = [=] { return ToStatus(Ctr(words)); },
            .check = IsIn(id, state),
            .optional = true};
  }

  static Step WithNext(Step step) {
    step.with_next = true;
    return step;
  }

  Life Detached(const std::string& id) {
    return LifeOf(
        id, {CreateAndStart(id, {"sh", "-c", "trap 'exit 7' TERM; while :; do usleep 5000; done"}),
             ExecToDelete(id, {"sh", "-c", "echo out; echo err >&2; exit 5"},
                          {.status = 5, .out = "out\n", .err = "err\n"}),
             Simple("Stats", {"tasks", "metrics", id}, id, "RUNNING"),
             Simple("Pids", {"tasks", "ps", id}, id, "RUNNING"),
             WithNext(Simple("Pause", {"tasks", "pause", id}, id, "PAUSED")),
             Simple("Resume", {"tasks", "resume", id}, id, "RUNNING"), KillAndTheEnd(id),
             DeleteAfter(id, 7)});
  }
};

TEST_F(FaultCtr, InEachStep) {
  Sweep("container", [this](const std::string& suffix) { return Detached(Id(suffix)); });
}

TEST_F(FaultCtr, UpgradedInEachStep) {
  Sweep(
      "container", [this](const std::string& suffix) { return Detached(Id(suffix)); },
      Of::kUpgrades);
}

}  // namespace
}  // namespace gantry::fault
