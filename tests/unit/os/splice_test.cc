// SPDX-License-Identifier: Apache-2.0
#include "core/os/splice.h"

#include <cerrno>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/os/move_call.h"

namespace gantry::os {
namespace {

/// Answers as the kernel might: a count, or an error below 0.
class ScriptedCall {
 public:
  explicit ScriptedCall(std::vector<int> answers) : answers_(std::move(answers)) {}

  ssize_t operator()() {
    const int answer = answers_.at(asked_++);
    errno = answer < 0 ? -answer : 0;
    return answer < 0 ? -1 : answer;
  }

  size_t asked() const { return asked_; }

 private:
  std::vector<int> answers_;
  size_t asked_ = 0;
};

TEST(MoveCall, EioBeforeTheRestOfATerminalIsNoEnd) {
  ScriptedCall call({-EIO, 7, -EIO, -EIO});
  EXPECT_EQ(MoveCall("read", std::ref(call)).value().bytes, 7U);
  const auto end = MoveCall("read", std::ref(call));
  ASSERT_FALSE(end.has_value());
  EXPECT_EQ(end.error().sys_errno, EIO);
  EXPECT_EQ(call.asked(), 4U);
}

TEST(MoveCall, EioOfATerminalThatIsOpenedAgainIsNoEnd) {
  ScriptedCall call({-EIO, -EAGAIN, -EIO, -EINTR, 3});
  EXPECT_TRUE(MoveCall("read", std::ref(call)).value().would_block);
  EXPECT_EQ(MoveCall("read", std::ref(call)).value().bytes, 3U);
}

TEST(MoveCall, OtherErrorsCountAtOnce) {
  ScriptedCall call({-EPIPE, -EINVAL, 0});
  EXPECT_EQ(MoveCall("write", std::ref(call)).error().sys_errno, EPIPE);
  EXPECT_EQ(MoveCall("write", std::ref(call)).error().code, Code::kInvalidArgument);
  EXPECT_TRUE(MoveCall("read", std::ref(call)).value().end);
}

}  // namespace
}  // namespace gantry::os
