// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/harness/fault_test.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <numeric>

#include "tests/fault/harness/disturbance.h"
#include "tests/fault/harness/report.h"
#include "tests/fault/harness/seed.h"
#include "tests/integration/harness/leftovers.h"

namespace gantry::fault {
namespace {

/// Then it is enough.
constexpr int kMostFailures = 8;

int Failures() {
  const auto& result = *::testing::UnitTest::GetInstance()->current_test_info()->result();
  return result.total_part_count();
}

using Faultlist = std::vector<Fault>;

/// Once at each time that it was passed, and what else can go wrong there once.
void AddFailures(const PassedPoint& point, Faultlist& plan) {
  for (uint32_t nth = 1; (point.kinds & kEffect) != 0 && nth <= point.times; ++nth) {
    plan.push_back({point.name, nth, Trouble::kKill});
  }
  if ((point.kinds & kSpace) != 0) {
    plan.push_back({point.name, 1, Trouble::kNoSpace});
  }
  if ((point.kinds & kDescriptor) != 0) {
    plan.push_back({point.name, 1, Trouble::kNoDescriptors});
  }
}

/// Each that succeeds at each time that it was passed, and one of those that are given up.
void AddUpgrades(const PassedPoint& point, Faultlist& plan) {
  constexpr Trouble kGivenUp[] = {Trouble::kCrashingUpgrade, Trouble::kRefusedUpgrade,
                                  Trouble::kSilentUpgrade};
  for (uint32_t nth = 1; (point.kinds & kEffect) != 0 && nth <= point.times; ++nth) {
    const Trouble given_up = kGivenUp[plan.size() / 3 % std::size(kGivenUp)];
    for (const Trouble trouble : {Trouble::kUpgrade, Trouble::kKeeperUpgrade, given_up}) {
      plan.push_back({point.name, nth, trouble});
    }
  }
}

/// GANTRY_FAULT_EVERY=N: every Nth of all, another one with another seed. And to look at one
/// again: GANTRY_FAULT_ONLY is what the log says of it.
void Choose(std::vector<Faultlist>& plans) {
  const char* const only = std::getenv("GANTRY_FAULT_ONLY");
  const char* const every = std::getenv("GANTRY_FAULT_EVERY");
  const unsigned step = every != nullptr ? static_cast<unsigned>(std::max(1, std::atoi(every))) : 1;
  std::array<unsigned, kTroubles> numbers;
  // Of each kind another one: a point has several.
  std::iota(numbers.begin(), numbers.end(), step > 1 ? Seed() : 0);
  for (Faultlist& plan : plans) {
    std::erase_if(plan, [&](const Fault& fault) {
      return only != nullptr ? Describe(fault) != only
                             : numbers[static_cast<size_t>(fault.trouble)]++ % step != 0;
    });
    std::ranges::reverse(plan);
  }
}

}  // namespace

void FaultTest::SetUp() {
  CriTest::SetUp();
  if (IsSkipped() || HasFatalFailure()) {
    return;
  }
  events_ = std::make_unique<e2e::Events>(node());
  witness_ = std::make_unique<Witness>(node(), settings(), Id("witness"));
}

void FaultTest::TearDown() {
  Faults::Get().Disarm();
  if (witness_ != nullptr) {
    witness_->Testify();
  }
  events_.reset();
  CriTest::TearDown();
}

void FaultTest::WaitForEngine() {
  // For each task, containerd asks for its state.
  for (const char* ns : {settings().ns.c_str(), "k8s.io"}) {
    const e2e::Output listed = e2e::RunProgram(
        {settings().containerd_bin + "/ctr", "-a", node().address(), "-n", ns, "tasks", "ls"});
    EXPECT_EQ(listed.status, 0) << listed.Text();
  }
}

std::vector<FaultTest::Plan> FaultTest::Look(const MakeLife& make, Of of) {
  const Life life = make("-" + std::to_string(++lives_));
  std::vector<Plan> plans;
  for (const Step& step : life.steps) {
    Faults::Get().Record();
    const Status done = step.run();
    const std::vector<PassedPoint> passed = Faults::Get().Recorded();
    EXPECT_TRUE(done) << step.operation << ": " << done.error_or(Error{}).message;
    step.check();
    Plan& plan = plans.emplace_back();
    for (const PassedPoint& point : passed) {
      of == Of::kFailures ? AddFailures(point, plan) : AddUpgrades(point, plan);
    }
  }
  Choose(plans);
  life.end(true);
  return plans;
}

void FaultTest::RunStep(const std::string& operation, const Step& step, Plan& plan,
                        bool& undisturbed) {
  const Fault fault = plan.empty() ? Fault() : plan.back();
  SCOPED_TRACE(operation + ", " + (plan.empty() ? std::string("as it is") : Describe(fault)));
  std::unique_ptr<Disturbance> disturbance;
  if (!plan.empty()) {
    plan.pop_back();
    disturbance = std::make_unique<Disturbance>(node(), fault);
  }
  Status done = step.run();
  const bool happened = disturbance != nullptr && disturbance->End();
  if (!fault.point.empty()) {
    Report::Get().Add(operation, fault, happened);
    std::cout << lives_ << ". " << operation << ": " << Describe(fault)
              << (happened ? "" : ", which was not passed") << std::endl;
  }
  if (!done && happened && MayFail(fault.trouble)) {
    // It may fail then. It may not be in the way of another one.
    undisturbed = false;
    step.undo();
    done = step.again ? step.again() : step.run();
  }
  EXPECT_TRUE(done) << done.error_or(Error{}).message;
  if (happened) {
    WaitForEngine();
  }
  step.check();
}

void FaultTest::ExpectNothingLeft() {
  EXPECT_EQ(e2e::Leftovers(node(), {}, Id("-" + std::to_string(lives_)), known_), "")
      << "left after life " << lives_;
}

void FaultTest::LiveWith(const std::string& name, const Life& life, std::vector<Plan>& plans) {
  bool undisturbed = true;
  const int before = Failures();
  bool with_last = false;
  for (size_t i = 0; i < life.steps.size() && Failures() == before; ++i) {
    const Step& step = life.steps[i];
    const bool has_turn = !plans[i].empty() || (step.with_next && !plans[i + 1].empty());
    if (!step.optional || has_turn || (i > 0 && life.steps[i - 1].with_next && with_last)) {
      with_last = true;
      RunStep(name + ": " + step.operation, step, plans[i], undisturbed);
    } else {
      with_last = false;
    }
  }
  if (Failures() == before) {
    life.end(undisturbed);
    ExpectNothingLeft();
  } else {
    life.give_up();
  }
}

void FaultTest::Sweep(const std::string& name, const MakeLife& make, Of of) {
  known_ = e2e::WhatIsThere(node(), Id());
  std::vector<Plan> plans = Look(make, of);
  const auto more = [&] {
    return std::ranges::any_of(plans, [](auto& plan) { return !plan.empty(); });
  };
  for (int failed = 0; more() && failed < kMostFailures;) {
    const int before = Failures();
    LiveWith(name, make("-" + std::to_string(++lives_)), plans);
    failed += Failures() > before ? 1 : 0;
  }
}

}  // namespace gantry::fault
