// SPDX-License-Identifier: Apache-2.0
//
// Virtual machines: what goes wrong with gantry's engine while one boots, while its containers,
// execs and streams come and go, and while it ends. A machine takes seconds to boot without KVM, so
// what needs no new one shares one.
#include "tests/harness/vmm_test.h"

#include <csignal>
#include <string>

#include "tests/fault/harness/ctr_fault_test.h"

namespace gantry::fault {
namespace {

using e2e::Output;

class FaultVmm : public CtrFaultTest {
 protected:
  void SetUp() override {
    if (!settings().vmm()) {
      GTEST_SKIP() << "is about the vmm backend";
    }
    CtrFaultTest::SetUp();
  }

  void TearDown() override {
    CtrFaultTest::TearDown();
    if (!IsSkipped()) {
      e2e::ExpectNoMachine(node());
    }
  }

  /// As `CreateAndStart`, in the time that two boots take: one may be cut short.
  static Step Boot(const std::string& id) {
    Step step = CreateAndStart(id, {"sleep", "100000"});
    step.run = [=] {
      return ToStatus(RunContainer({"-d"}, id, {"sleep", "100000"}, {}, 2 * e2e::kLong));
    };
    return step;
  }

  Life Whole(const std::string& id) {
    return LifeOf(id, {Boot(id), KillAndTheEnd(id, "KILL"), DeleteAfter(id, 128 + SIGKILL)});
  }

  /// Bytes through all three streams of an exec.
  static Step Streams(const std::string& id) {
    return {.operation = "Exec with streams",
            .run = [=]() -> Status {
              const std::string text(200'000, 'x');
              const Output done = E2eTest::Exec(id, {"sh", "-c", "echo err >&2; cat; exit 5"}, {},
                                                text, e2e::kLong);
              GANTRY_CHECK_OK(ToStatus(done, 5));
              EXPECT_TRUE(done.out == text) << done.out.size() << " of " << text.size();
              EXPECT_EQ(done.err, "err\n");
              return {};
            },
            .check = IsIn(id, "RUNNING")};
  }

  static Step Call(const char* operation, const std::string& id, const e2e::Words& words) {
    return {.operation = operation,
            .run = [=] { return ToStatus(Ctr(words)); },
            .check = IsIn(id, words[1] == "pause" ? "PAUSED" : "RUNNING")};
  }

  /// Of a container that is there before and after.
  Life InAMachine(const std::string& id) {
    Life life{.steps = {ExecToDelete(id, {"sh", "-c", "echo out; echo err >&2; exit 5"},
                                     {.status = 5, .out = "out\n", .err = "err\n"}),
                        Streams(id), Call("Pause", id, {"tasks", "pause", id}),
                        Call("Resume", id, {"tasks", "resume", id}),
                        Call("Stats", id, {"tasks", "metrics", id})},
              .end = [](bool) {},
              .give_up = [] {}};
    // A pause that was undone by a fault is not resumed twice.
    life.steps[2].again = [=] {
      return FindTask(id).state == "PAUSED" ? Status() : ToStatus(Ctr({"tasks", "pause", id}));
    };
    life.steps[3].again = [=] {
      return FindTask(id).state == "RUNNING" ? Status() : ToStatus(Ctr({"tasks", "resume", id}));
    };
    return life;
  }
};

TEST_F(FaultVmm, InEachStepOfAMachine) {
  Sweep("machine", [this](const std::string& suffix) { return Whole(Id(suffix)); });
}

TEST_F(FaultVmm, UpgradedInEachStepOfAMachine) {
  Sweep("machine", [this](const std::string& suffix) { return Whole(Id(suffix)); }, Of::kUpgrades);
}

TEST_F(FaultVmm, InEachStepInAMachine) {
  const std::string id = Id("-stays");
  ASSERT_TRUE(Boot(id).run());
  const pid_t vmm = FindTask(id).pid;
  Sweep("in a machine", [this, id](const std::string&) { return InAMachine(id); });
  EXPECT_EQ(FindTask(id).pid, vmm) << "it is another machine";
  Forget(id);
}

}  // namespace
}  // namespace gantry::fault
