// SPDX-License-Identifier: Apache-2.0
#include "core/os/idle_trim.h"

#include <gtest/gtest.h>

#include "core/os/loop.h"

namespace gantry::os {
namespace {

class IdleTrimTest : public testing::Test {
 protected:
  IdleTrim::Options Options(int most_busy) {
    return {std::chrono::milliseconds(1), most_busy, [this] { ++released_; }};
  }

  /// Turns of the loop, at most ten seconds of waiting.
  void TurnUntil(const std::function<bool()>& done, const std::function<void()>& each) {
    for (int i = 0; i < 1000 && !done(); ++i) {
      each();
      loop_.RunOnce(std::chrono::milliseconds(10));
    }
  }

  Loop loop_;
  int released_ = 0;
};

TEST_F(IdleTrimTest, ReleasesOnceItIsQuiet) {
  IdleTrim trim(loop_, Options(1'000'000));
  trim.Touch();
  EXPECT_EQ(released_, 0);
  TurnUntil([&] { return released_ > 0; }, [] {});
  EXPECT_EQ(released_, 1);
  EXPECT_FALSE(loop_.RunOnce(std::chrono::milliseconds(0))) << "and then it costs nothing";
}

TEST_F(IdleTrimTest, ReleasesNowAndThenWhileItIsBusy) {
  IdleTrim trim(loop_, Options(3));
  TurnUntil([&] { return released_ == 2; }, [&] { trim.Touch(); });
  EXPECT_EQ(released_, 2);
}

TEST_F(IdleTrimTest, ReleasesAtOnceWhatATickHasTouched) {
  IdleTrim trim(loop_, {std::chrono::hours(1), 3, [this] { ++released_; }});
  trim.Tick();
  EXPECT_EQ(released_, 0) << "not before it is done";
  loop_.RunOnce(std::chrono::milliseconds(10));
  EXPECT_EQ(released_, 1);
  trim.Touch();
  trim.Tick();
  loop_.RunOnce(std::chrono::milliseconds(10));
  EXPECT_EQ(released_, 1) << "it waits until all is quiet";
}

TEST_F(IdleTrimTest, IsQuietAfterItsEnd) {
  {
    IdleTrim(loop_, Options(1)).Touch();
  }
  EXPECT_FALSE(loop_.RunOnce(std::chrono::milliseconds(20)));
  EXPECT_EQ(released_, 0);
}

}  // namespace
}  // namespace gantry::os
