// SPDX-License-Identifier: Apache-2.0
#include "core/keeper/heartbeat.h"

#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/async/simulated_loop.h"

namespace gantry::keeper {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLimit{100};

class HeartbeatTest : public testing::Test {
 protected:
  test::SimulatedLoop loop_;
  std::vector<uint64_t> pings_;
  std::optional<milliseconds> silent_;
  Heartbeat heartbeat_{loop_,
                       {.ping = [this](uint64_t number) { pings_.push_back(number); },
                        .silent = [this](milliseconds time) { silent_ = time; }}};
};

TEST_F(HeartbeatTest, AsksOnAndOnAsLongAsItIsAnswered) {
  heartbeat_.Begin(kLimit);
  for (size_t i = 1; i <= 5; ++i) {
    EXPECT_EQ(pings_.size(), i);
    heartbeat_.OnPong(pings_.back());
    loop_.Advance(kLimit / 2);
  }
  EXPECT_FALSE(silent_);
}

TEST_F(HeartbeatTest, SaysWhenTheLimitIsOver) {
  heartbeat_.Begin(kLimit);
  loop_.Advance(kLimit - std::chrono::nanoseconds(1));
  EXPECT_FALSE(silent_);
  loop_.Advance(std::chrono::nanoseconds(1));
  EXPECT_EQ(silent_, kLimit);
  EXPECT_EQ(pings_.size(), 1U);
}

/// The machine was stopped, or very busy: the one that is asked may have been, too.
TEST_F(HeartbeatTest, CountsFromAnewWhereTheKeeperDidNotRun) {
  heartbeat_.Begin(kLimit);
  loop_.clock.Turn(10 * kLimit);
  loop_.Advance(kLimit - std::chrono::nanoseconds(1));
  EXPECT_FALSE(silent_);
  loop_.Advance(std::chrono::nanoseconds(1));
  EXPECT_EQ(silent_, kLimit);
}

TEST_F(HeartbeatTest, TakesNoAnswerToAnEarlierQuestion) {
  heartbeat_.Begin(kLimit);
  heartbeat_.OnPong(pings_.back());
  loop_.Advance(kLimit / 2);
  ASSERT_EQ(pings_.size(), 2U);
  heartbeat_.OnPong(pings_.front());
  loop_.Advance(kLimit);
  EXPECT_TRUE(silent_);
}

TEST_F(HeartbeatTest, AsksNothingWithoutALimit) {
  heartbeat_.Begin({});
  EXPECT_TRUE(pings_.empty());
}

TEST_F(HeartbeatTest, AsksNothingAfterTheEnd) {
  heartbeat_.Begin(kLimit);
  heartbeat_.End();
  loop_.Advance(5 * kLimit);
  EXPECT_FALSE(silent_);
  EXPECT_EQ(pings_.size(), 1U);
}

}  // namespace
}  // namespace gantry::keeper
