// SPDX-License-Identifier: Apache-2.0
#include "core/metrics/pages.h"

#include <chrono>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/async/simulated_loop.h"

namespace gantry::metrics {
namespace {

using namespace std::chrono_literals;

class MetricsPages : public testing::Test {
 protected:
  void Ask(TextFormat format = TextFormat::kPrometheus) {
    pages_.Ask(format, [this](Page page) { taken_.push_back(std::move(page)); });
  }

  /// The look that is under way ends.
  void Look() {
    ASSERT_TRUE(done_);
    std::exchange(done_, {})([this] {
      Moment moment;
      moment.version = std::to_string(++moments_);
      return moment;
    });
  }

  test::SimulatedLoop loop_;
  int looks_ = 0;
  int moments_ = 0;
  Pages::Done done_;
  std::vector<Page> taken_;
  Pages pages_{loop_,
               [this](Pages::Done done) {
                 ++looks_;
                 done_ = std::move(done);
               },
               100ms};
};

TEST_F(MetricsPages, GiveOneLookToAllWhoCameBeforeIt) {
  Ask();
  // They come while it is under way: what they have just done may not be in it.
  for (int i = 0; i < 99; ++i) {
    Ask();
  }
  EXPECT_EQ(looks_, 1);
  Look();
  EXPECT_EQ(taken_.size(), 1U);
  EXPECT_EQ(looks_, 2);
  Look();
  ASSERT_EQ(taken_.size(), 100U);
  EXPECT_EQ(looks_, 2);
  EXPECT_EQ(taken_[1], taken_[99]) << "the same memory";
}

TEST_F(MetricsPages, GiveAYoungOneAgain) {
  Ask();
  Look();
  loop_.Advance(99ms);
  Ask();
  EXPECT_EQ(looks_, 1);
  ASSERT_EQ(taken_.size(), 2U);
  EXPECT_EQ(taken_[0], taken_[1]);
  loop_.Advance(1ms);
  Ask();
  EXPECT_EQ(looks_, 2);
}

TEST_F(MetricsPages, AreForgottenWhenTheyAreNotYoungAnyMore) {
  Ask();
  Look();
  EXPECT_GT(taken_.front().use_count(), 1);
  loop_.Advance(101ms);
  EXPECT_EQ(taken_.front().use_count(), 1);
}

TEST_F(MetricsPages, AreMadeInBothFormatsOfOneMoment) {
  Ask(TextFormat::kOpenMetrics);
  Look();
  Ask(TextFormat::kPrometheus);
  EXPECT_EQ(looks_, 1);
  ASSERT_EQ(taken_.size(), 2U);
  EXPECT_TRUE(taken_[0]->ends_with("# EOF\n"));
  EXPECT_FALSE(taken_[1]->ends_with("# EOF\n"));
}

TEST_F(MetricsPages, ServeWhoAsksInTheMiddleOfBeingServed) {
  pages_.Ask(TextFormat::kPrometheus, [this](Page page) {
    taken_.push_back(std::move(page));
    Ask();
  });
  Look();
  EXPECT_EQ(taken_.size(), 2U);
}

TEST_F(MetricsPages, RefuseThoseAboveALimit) {
  for (size_t i = 0; i < Pages::kMostWaiting; ++i) {
    Ask();
  }
  EXPECT_TRUE(taken_.empty());
  Ask();
  ASSERT_EQ(taken_.size(), 1U);
  EXPECT_EQ(taken_.front(), nullptr);
}

}  // namespace
}  // namespace gantry::metrics
