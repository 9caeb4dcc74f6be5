// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/churn/disturber.h"

#include <signal.h>

#include <gtest/gtest.h>

namespace gantry::fault {
namespace {

/// A life is some eight steps.
constexpr uint32_t kFewestSteps = 20;
constexpr uint32_t kMostSteps = 400;

}  // namespace

Disturber::Disturber(const e2e::Node& node, unsigned seed)
    : node_(node), random_(seed), thread_([this] { Run(); }) {}

void Disturber::Step() {
  steps_.fetch_add(1);
  steps_.notify_one();
}

void Disturber::Stop() {
  if (!stopped_.exchange(true)) {
    Step();
    thread_.join();
  }
}

void Disturber::Run() {
  while (!stopped_) {
    const uint32_t now = steps_;
    const uint32_t due =
        now + std::uniform_int_distribution<uint32_t>(kFewestSteps, kMostSteps)(random_);
    for (uint32_t seen = now; seen < due && !stopped_; seen = steps_) {
      steps_.wait(seen);
    }
    if (!stopped_) {
      Disturb();
    }
  }
}

void Disturber::Disturb() {
  switch (std::uniform_int_distribution<int>(0, 9)(random_)) {
    case 0:
      upgrades_ += Upgrade({"upgrade"}) ? 1 : 0;
      break;
    case 1:
      keeper_upgrades_ +=
          Upgrade({"upgrade", "--keeper", node_.settings().gantry_bin + "/gantry-keeper"}) ? 1 : 0;
      break;
    default:
      KillEngine();
      break;
  }
}

void Disturber::KillEngine() {
  e2e::HostProcess engine;
  EXPECT_TRUE(e2e::Eventually([&] {
    engine = node_.Engine();
    return engine.pid != 0;
  })) << "no engine runs";
  if (engine.pid != 0) {
    kill(engine.pid, SIGKILL);
    EXPECT_TRUE(e2e::WaitGone(engine.pid));
    ++kills_;
  }
}

bool Disturber::Upgrade(const std::vector<std::string>& words) const {
  std::vector<std::string> all = {node_.settings().gantry_bin + "/gantryctl", "--address",
                                  node_.settings().run_dir + "/gantry.sock"};
  all.insert(all.end(), words.begin(), words.end());
  const e2e::Output done = e2e::RunProgram(all);
  EXPECT_EQ(done.status, 0) << done.Text();
  return done.status == 0;
}

}  // namespace gantry::fault
