// SPDX-License-Identifier: Apache-2.0
#include "core/keeper/heartbeat.h"

#include <optional>
#include <vector>

#include <gtest/gtest.h>

namespace gantry::keeper {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLimit{100};

class HeartbeatTest : public testing::Test {
 protected:
  /// Turns the loop until so many were asked, or until it was found silent.
  void Turn(size_t pings) {
    while (pings_.size() < pings && !silent_) {
      loop_.RunOnce(std::chrono::seconds(10));
    }
  }

  os::Loop loop_;
  std::vector<uint64_t> pings_;
  std::optional<milliseconds> silent_;
  Heartbeat heartbeat_{loop_,
                       {.ping = [this](uint64_t number) { pings_.push_back(number); },
                        .silent = [this](milliseconds time) { silent_ = time; }}};
};

TEST_F(HeartbeatTest, AsksOnAndOnAsLongAsItIsAnswered) {
  heartbeat_.Begin(kLimit);
  for (size_t i = 1; i <= 5; ++i) {
    Turn(i);
    heartbeat_.OnPong(pings_.back());
  }
  EXPECT_FALSE(silent_);
}

TEST_F(HeartbeatTest, SaysWhenTheLimitIsOver) {
  heartbeat_.Begin(kLimit);
  Turn(2);
  ASSERT_TRUE(silent_);
  EXPECT_GE(*silent_, kLimit);
  EXPECT_EQ(pings_.size(), 1U);
}

TEST_F(HeartbeatTest, TakesNoAnswerToAnEarlierQuestion) {
  heartbeat_.Begin(kLimit);
  heartbeat_.OnPong(pings_.back());
  Turn(2);
  heartbeat_.OnPong(pings_.front());
  Turn(3);
  EXPECT_TRUE(silent_);
}

TEST_F(HeartbeatTest, AsksNothingWithoutALimit) {
  heartbeat_.Begin({});
  EXPECT_TRUE(pings_.empty());
}

TEST_F(HeartbeatTest, AsksNothingAfterTheEnd) {
  heartbeat_.Begin(kLimit);
  heartbeat_.End();
  // Another one tells the time.
  std::vector<uint64_t> beats;
  Heartbeat clock(loop_, {.ping = [&](uint64_t number) { beats.push_back(number); },
                          .silent = [](milliseconds) {}});
  clock.Begin(kLimit);
  while (beats.size() < 5) {
    clock.OnPong(beats.back());
    loop_.RunOnce(std::chrono::seconds(10));
  }
  EXPECT_FALSE(silent_);
  EXPECT_EQ(pings_.size(), 1U);
}

}  // namespace
}  // namespace gantry::keeper
