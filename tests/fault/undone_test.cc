// SPDX-License-Identifier: Apache-2.0
//
// The engine is killed while it makes a container, and so is the next one, at each step of
// undoing and making it again: the client does not notice, and nothing is left in the bundle.
#include <algorithm>
#include <functional>
#include <stop_token>
#include <thread>
#include <vector>

#include "tests/fault/harness/disturbance.h"
#include "tests/fault/harness/fault_test.h"

namespace gantry::fault {
namespace {

/// Each time, more of the container has been made.
constexpr const char* kRecorded = "rename to gantry.record";

class FaultUndone : public FaultTest {
 protected:
  std::string handler() const override {
    return settings().sandbox_api() ? "gantry-shim" : "gantry";
  }

  /// A container that is started in a new pod, right behind `before`. What happens meanwhile is
  /// up to `during`.
  void Live(const std::function<void()>& before,
            const std::function<void(const std::stop_token&)>& during) {
    const e2e::PodConfig config = Pod("-" + std::to_string(++pods_));
    const std::string pod = RunPod(config);
    e2e::ContainerConfig wanted;
    wanted.name = "one";
    wanted.command = {"sleep", "1000"};
    const auto container = cri().Create(pod, config, wanted);
    ASSERT_TRUE(container) << container.error().message;
    Status started;
    {
      before();
      const std::jthread meanwhile(during);
      started = cri().Start(*container);
    }
    EXPECT_TRUE(started) << started.error().message;
    passed_ = Faults::Get().Recorded();
    happened_ = Faults::Get().Disarm();
    WaitForEngine();
    EXPECT_EQ(StatusOf(*container).state(), e2e::cri::CONTAINER_RUNNING);
    RemovePods();
    RemoveParents();
    ExpectNoBundles();
  }

  uint32_t CountRecords() {
    Live([] { Faults::Get().Record(); }, [](const std::stop_token&) {});
    const auto found = std::ranges::find(passed_, kRecorded, &PassedPoint::name);
    return found == passed_.end() ? 0 : found->times;
  }

  /// Kills the engine at the `nth` record, and does `armed` before the next one is there.
  void LiveKilled(uint32_t nth, const std::function<void()>& armed) {
    const auto arm = [&] { Faults::Get().Arm({kRecorded, nth, Trouble::kUpgrade}); };
    Live(arm, [&](const std::stop_token& stop) {
      if (Faults::Get().WaitUntilHappened(stop)) {
        KillEngine(armed);
      }
    });
  }

  FaultList KillsAfter(uint32_t nth) {
    FaultList kills;
    LiveKilled(nth, [] { Faults::Get().Record(); });
    for (const PassedPoint& point : passed_) {
      AddFailures(point, kills);
    }
    std::erase_if(kills, [](const Fault& fault) { return MayFail(fault.trouble); });
    return kills;
  }

  /// Until the container had been started.
  std::vector<PassedPoint> passed_;
  bool happened_ = false;

 private:
  int pods_ = 0;
};

TEST_F(FaultUndone, InEachStep) {
  std::vector<FaultList> runs;
  const uint32_t records = CountRecords();
  ASSERT_GT(records, 0U) << "'" << kRecorded << "' is no point any more";
  for (uint32_t nth = 1; nth <= records && !HasFailure(); ++nth) {
    runs.push_back(KillsAfter(nth));
    EXPECT_FALSE(runs.back().empty()) << "after record " << nth;
  }
  Choose(runs);
  for (uint32_t nth = 1; nth <= runs.size(); ++nth) {
    const std::string operation = "create, killed at record " + std::to_string(nth);
    for (FaultList& list = runs[nth - 1]; !list.empty() && !HasFailure(); list.pop_back()) {
      SCOPED_TRACE(operation + ", " + Describe(list.back()));
      LiveKilled(nth, [&] { Faults::Get().Arm(list.back()); });
      Note(operation, list.back(), happened_);
    }
  }
}

}  // namespace
}  // namespace gantry::fault
