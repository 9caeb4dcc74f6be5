// SPDX-License-Identifier: Apache-2.0
//
// Anything, at any moment: random operations on some containers, with random faults, also
// while an engine that was killed comes back.
#include <iostream>
#include <random>

#include "tests/fault/harness/fault_test.h"
#include "tests/fault/harness/report.h"
#include "tests/fault/harness/seed.h"

namespace gantry::fault {
namespace {

using e2e::Output;
using e2e::Words;

constexpr size_t kContainers = 4;
constexpr int kOperations = 120;
/// An operation passes some tens of points.
constexpr uint32_t kFarthest = 60;

/// What a container should be like. Empty: there is none.
struct Expected {
  std::string id;
  std::string state;
};

struct Operation {
  const char* name;
  const char* from;
  const char* to;
  Words words;
  int status = 0;
};

/// `exec`: another one each time. A client does not say that it could not delete one.
std::vector<Operation> OperationsOn(const std::string& id, const std::string& exec) {
  return {
      {"Exec",
       "RUNNING",
       "RUNNING",
       {"tasks", "exec", "--exec-id", exec, id, "sh", "-c", "exit 5"},
       5},
      {"Stats", "RUNNING", "RUNNING", {"tasks", "metrics", id}},
      {"Pause", "RUNNING", "PAUSED", {"tasks", "pause", id}},
      {"Resume", "PAUSED", "RUNNING", {"tasks", "resume", id}},
      {"Kill", "RUNNING", "STOPPED", {"tasks", "kill", "-s", "TERM", id}},
      {"Delete", "STOPPED", "", {"tasks", "rm", id}},
  };
}

class FaultRandom : public FaultTest {
 protected:
  void SetUp() override {
    FaultTest::SetUp();
    random_.seed(Seed());
    for (size_t i = 0; i < kContainers; ++i) {
      containers_.push_back({Id("-" + std::to_string(i)), ""});
    }
  }

  size_t Below(size_t end) { return std::uniform_int_distribution<size_t>(0, end - 1)(random_); }

  Operation Choose(const Expected& container) {
    if (container.state.empty()) {
      Words words = RunWords({"-d"}, container.id,
                             {"sh", "-c", "trap 'exit 7' TERM; while :; do usleep 5000; done"});
      return {"Create and Start", "", "RUNNING", std::move(words)};
    }
    std::vector<Operation> possible = OperationsOn(container.id, "x" + std::to_string(++execs_));
    std::erase_if(possible, [&](const Operation& one) { return one.from != container.state; });
    return possible[Below(possible.size())];
  }

  /// Kills most of the time.
  Fault ChooseFault() {
    constexpr Trouble kFailures[] = {Trouble::kKill, Trouble::kKill, Trouble::kKill,
                                     Trouble::kNoSpace, Trouble::kNoDescriptors};
    return {"", static_cast<uint32_t>(1 + Below(kFarthest)),
            kFailures[Below(std::size(kFailures))]};
  }

  void Forget(Expected& container) {
    Ctr({"tasks", "rm", "-f", container.id});
    Ctr({"containers", "rm", container.id});
    container.state = "";
  }

  /// One operation, with what may go wrong.
  void Act() {
    Expected& container = containers_[Below(containers_.size())];
    const Operation operation = Choose(container);
    const Fault fault = ChooseFault();
    const std::string what =
        std::string(operation.name) + " of " + container.id + ", " + Describe(fault);
    SCOPED_TRACE(what);
    Faults::Get().Arm(fault);
    const Output done = Ctr(operation.words);
    // Not disarmed: it may happen while what the operation has begun goes on.
    if (done.status == operation.status) {
      container.state = operation.to;
    } else {
      EXPECT_TRUE(Faults::Get().happened() && MayFail(fault.trouble)) << done.Text();
      Forget(container);
    }
    if (container.state.empty()) {
      Ctr({"containers", "rm", container.id});
    }
    CheckStates();
    const bool happened = Faults::Get().Disarm();
    std::cout << "random: " << what << (happened ? "" : ", which was not passed") << std::endl;
    Report::Get().Add(std::string("random: ") + operation.name, {"any", fault.nth, fault.trouble},
                      happened);
  }

  void CheckStates() {
    const auto as_expected = [&] {
      const std::string listed = Ctr({"tasks", "ls"}).out;
      return std::ranges::all_of(containers_, [&](const Expected& one) {
        return e2e::TaskIn(listed, one.id).state == one.state;
      });
    };
    EXPECT_TRUE(e2e::Eventually(as_expected)) << Ctr({"tasks", "ls"}).Text();
  }

  std::mt19937 random_;
  int execs_ = 0;
  std::vector<Expected> containers_;
};

TEST_F(FaultRandom, LosesNothing) {
  for (int i = 0; i < kOperations && !HasFailure(); ++i) {
    SCOPED_TRACE("operation " + std::to_string(i));
    Act();
  }
  for (Expected& container : containers_) {
    Forget(container);
  }
}

}  // namespace
}  // namespace gantry::fault
