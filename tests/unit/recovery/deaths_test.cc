// SPDX-License-Identifier: Apache-2.0
//
// What engines crashed of when they took it up: named to the keeper, last, and left out.
#include <fcntl.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/link/messages.h"
#include "tests/unit/task/task_test.h"

namespace gantry::task {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class TaskRecoveryDeaths : public TaskTest {
 protected:
  /// The instance was announced as the n-th one.
  link::InstanceAdded& Told(uint64_t number) { return keeper_.instances.at(number); }

  /// Restarts the engine; returns when it has taken up what it does.
  void Recover() {
    keeper_.recovering.clear();
    RestartEngine();
    ASSERT_TRUE(
        Until([&] { return !keeper_.recovering.empty() && keeper_.recovering.back().finished; }));
  }

  static std::string At(const std::string& group) { return test::FakeKeeper::AddressOf(group); }

  /// The groups in the order in which they were begun; "," after those of one message.
  std::vector<std::string> Begun() const {
    std::vector<std::string> all;
    for (const link::Recovering& said : keeper_.recovering) {
      all.insert(all.end(), said.begun.begin(), said.begun.end());
      if (!said.begun.empty()) {
        all.emplace_back(",");
      }
    }
    return all;
  }
};

TEST_F(TaskRecoveryDeaths, TheKeeperIsToldWhatIsTakenUp) {
  Run("c1");
  Run("c2");
  Recover();
  EXPECT_THAT(Begun(), ElementsAre(At("c1"), At("c2"), ","));
  std::vector<std::string> done;
  for (const link::Recovering& said : keeper_.recovering) {
    done.insert(done.end(), said.done.begin(), said.done.end());
  }
  EXPECT_THAT(done, testing::UnorderedElementsAre(At("c1"), At("c2")));
}

TEST_F(TaskRecoveryDeaths, AKeeperOfBeforeIsNotTold) {
  Run("c1");
  keeper_.of_before = true;
  keeper_.recovering.clear();
  RestartEngine();
  EXPECT_EQ(State("c1")->status(), pb::RUNNING);
  EXPECT_THAT(keeper_.recovering, IsEmpty());
}

TEST_F(TaskRecoveryDeaths, WhatEnginesCrashedOfIsTakenUpLastAndAlone) {
  for (const char* id : {"c1", "c2", "c3", "c4"}) {
    Run(id);
  }
  Told(1).deaths = 1;
  Told(2).deaths = 2;
  Recover();
  EXPECT_THAT(Begun(), ElementsAre(At("c3"), At("c4"), ",", At("c1"), ",", At("c2"), ","));
  for (const char* id : {"c1", "c2", "c3", "c4"}) {
    EXPECT_EQ(State(id)->status(), pb::RUNNING);
  }
}

TEST_F(TaskRecoveryDeaths, OfWhatIsLeftOutNothingIsTouched) {
  backend_.SaveState("", "state");
  Run("c1");
  Run("c2");
  keeper_.stored["1/sandbox/backend/a"] = UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC));
  Told(1).deaths = 3;
  Told(1).left_out = true;
  Recover();
  EXPECT_THAT(Begun(), ElementsAre(At("c2"), ","));
  EXPECT_EQ(State("c2")->status(), pb::RUNNING);
  EXPECT_EQ(backend_.Count("recover c1 state"), 0U);
  EXPECT_EQ(backend_.Count("recover c2 state"), 1U);
  EXPECT_TRUE(keeper_.stored.contains("1/sandbox/backend/a")) << "its sandbox may live";
  // Deleted by the keeper alone.
  keeper_.RemoveInstance(1);
  EXPECT_EQ(State("c2")->status(), pb::RUNNING);
}

}  // namespace
}  // namespace gantry::task
