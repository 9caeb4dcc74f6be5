// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/harness/fault_test.h"

#include <signal.h>

#include <algorithm>
#include <iostream>

#include "tests/fault/harness/disturbance.h"
#include "tests/fault/harness/report.h"
#include "tests/harness/host.h"
#include "tests/harness/leftovers.h"

namespace gantry::fault {
namespace {

/// Then it is enough.
constexpr int kMostFailures = 8;

int Failures() {
  const auto& result = *::testing::UnitTest::GetInstance()->current_test_info()->result();
  return result.total_part_count();
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

void FaultTest::KillEngine(const std::function<void()>& armed) {
  e2e::HostProcess engine;
  ASSERT_TRUE(e2e::Eventually([&] {
    engine = node().Engine();
    return engine.pid != 0;
  }));
  kill(engine.pid, SIGSTOP);
  armed();
  kill(engine.pid, SIGKILL);
  ASSERT_TRUE(e2e::WaitGone(engine.pid));
}

void FaultTest::Note(const std::string& operation, const Fault& fault, bool happened) {
  Report::Get().Add(operation, fault, happened);
  std::cout << operation << ": " << Describe(fault) << (happened ? "" : ", which was not passed")
            << std::endl;
}

std::vector<FaultList> FaultTest::FindPoints(const MakeLife& make, Of of) {
  const Life life = make("-" + std::to_string(++lives_));
  std::vector<FaultList> runs;
  for (const Step& step : life.steps) {
    Faults::Get().Record();
    const Status done = step.run();
    const std::vector<PassedPoint> passed = Faults::Get().Recorded();
    EXPECT_TRUE(done) << step.operation << ": " << done.error_or(Error{}).message;
    step.check();
    FaultList& list = runs.emplace_back();
    for (const PassedPoint& point : passed) {
      of == Of::kFailures ? AddFailures(point, list) : AddUpgrades(point, list);
    }
  }
  Choose(runs);
  life.end(true);
  return runs;
}

void FaultTest::RunStep(const std::string& operation, const Step& step, FaultList& list,
                        bool& undisturbed) {
  const Fault fault = list.empty() ? Fault() : list.back();
  SCOPED_TRACE(operation + ", " + (list.empty() ? std::string("as it is") : Describe(fault)));
  std::unique_ptr<Disturbance> disturbance;
  if (!list.empty()) {
    list.pop_back();
    disturbance = std::make_unique<Disturbance>(node(), fault);
  }
  Status done = step.run();
  const bool happened = disturbance != nullptr && disturbance->End();
  if (!fault.point.empty()) {
    std::cout << lives_ << ". ";
    Note(operation, fault, happened);
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

void FaultTest::LiveWith(const std::string& name, const Life& life, std::vector<FaultList>& runs) {
  bool undisturbed = true;
  const int before = Failures();
  bool with_last = false;
  for (size_t i = 0; i < life.steps.size() && Failures() == before; ++i) {
    const Step& step = life.steps[i];
    const bool has_turn = !runs[i].empty() || (step.with_next && !runs[i + 1].empty());
    if (!step.optional || has_turn || (i > 0 && life.steps[i - 1].with_next && with_last)) {
      with_last = true;
      RunStep(name + ": " + step.operation, step, runs[i], undisturbed);
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
  std::vector<FaultList> runs = FindPoints(make, of);
  const auto more = [&] {
    return std::ranges::any_of(runs, [](auto& list) { return !list.empty(); });
  };
  for (int failed = 0; more() && failed < kMostFailures;) {
    const int before = Failures();
    LiveWith(name, make("-" + std::to_string(++lives_)), runs);
    failed += Failures() > before ? 1 : 0;
  }
}

}  // namespace gantry::fault
