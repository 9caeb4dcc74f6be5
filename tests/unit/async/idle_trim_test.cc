// SPDX-License-Identifier: Apache-2.0
#include "core/async/idle_trim.h"

#include <gtest/gtest.h>

#include "tests/unit/async/simulated_loop.h"

namespace gantry::async {
namespace {

constexpr Duration kQuiet = std::chrono::seconds(1);

class IdleTrimTest : public testing::Test {
 protected:
  IdleTrim::Options Options(int most_busy) {
    return {kQuiet, most_busy, [this] { ++released_; }};
  }

  test::SimulatedLoop loop_;
  int released_ = 0;
};

TEST_F(IdleTrimTest, ReleasesOnceItIsQuiet) {
  IdleTrim trim(loop_, Options(1'000'000));
  trim.Touch();
  loop_.Advance(2 * kQuiet - Duration(1));
  EXPECT_EQ(released_, 0);
  loop_.Advance(Duration(1));
  EXPECT_EQ(released_, 1);
  EXPECT_EQ(loop_.timers(), 0U) << "and then it costs nothing";
}

TEST_F(IdleTrimTest, ReleasesNowAndThenWhileItIsBusy) {
  IdleTrim trim(loop_, Options(3));
  for (int i = 0; i < 6; ++i) {
    trim.Touch();
    loop_.Advance(kQuiet);
  }
  EXPECT_EQ(released_, 2);
}

TEST_F(IdleTrimTest, ReleasesAtOnceWhatATickHasTouched) {
  IdleTrim trim(loop_, Options(3));
  trim.Tick();
  EXPECT_EQ(released_, 0) << "not before it is done";
  loop_.Advance({});
  EXPECT_EQ(released_, 1);
  trim.Touch();
  trim.Tick();
  loop_.Advance({});
  EXPECT_EQ(released_, 1) << "it waits until all is quiet";
}

TEST_F(IdleTrimTest, IsQuietAfterItsEnd) {
  {
    IdleTrim(loop_, Options(1)).Touch();
  }
  EXPECT_EQ(loop_.timers(), 0U);
  loop_.Advance(10 * kQuiet);
  EXPECT_EQ(released_, 0);
}

}  // namespace
}  // namespace gantry::async
