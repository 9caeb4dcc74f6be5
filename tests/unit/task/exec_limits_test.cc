// SPDX-License-Identifier: Apache-2.0
//
// How many execs a container has, and how large they are.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/task/task_test.h"

namespace gantry::task {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class TaskExecLimits : public TaskTest {
 protected:
  /// With an environment of so many bytes.
  Result<wire::Empty> ExecWith(const std::string& exec, size_t bytes) {
    pb::ExecProcessRequest request;
    request.set_id("c1");
    request.set_exec_id(exec);
    request.mutable_spec()->set_value(R"({"args":["true"],"cwd":"/","env":["X=)" +
                                      std::string(bytes, 'x') + R"("]})");
    return Ask<wire::Empty>("Exec", request, "c1");
  }
};

TEST_F(TaskExecLimits, WhatNoEngineCouldReadIsRefused) {
  Run("c1");
  constexpr int kExecs = 5;
  constexpr size_t kEach = size_t{7} << 19;
  int taken = 0;
  Result<wire::Empty> last = wire::Empty();
  for (int i = 0; i < kExecs && last; ++i) {
    last = ExecWith("e" + std::to_string(i), kEach);
    taken += last ? 1 : 0;
  }
  EXPECT_EQ(taken, kExecs - 1);
  EXPECT_EQ(CodeOf(last), Code::kResourceExhausted);
  EXPECT_THAT(MessageOf(last),
              AllOf(HasSubstr("exec 'e" + std::to_string(taken) + "' in container 'c1'"),
                    HasSubstr("read again")));
  // What came before goes on being recorded.
  ASSERT_TRUE(Start("c1/e0"));
  End("c1/e0", 0);
  RestartEngine();
  EXPECT_EQ(State("c1")->status(), pb::RUNNING);
  EXPECT_EQ(State("c1/e0")->status(), pb::STOPPED);
  EXPECT_EQ(State("c1/e" + std::to_string(taken - 1))->status(), pb::CREATED);
  EXPECT_EQ(CodeOf(State("c1/e" + std::to_string(taken))), Code::kNotFound);
  ASSERT_TRUE(Delete("c1/e0"));
  EXPECT_TRUE(ExecWith("again", kEach));
}

using TaskExec = TaskTest;

TEST_F(TaskExec, ThatHasEndedMakesRoomForAnother) {
  around_.config.limits.max_execs_per_container = 3;
  RestartEngine();
  Run("c1");
  RunExec("c1/first");
  RunExec("c1/second");
  RunExec("c1/third");
  EXPECT_EQ(CodeOf(Exec("c1/more")), Code::kResourceExhausted) << "all run";
  End("c1/second", 0);
  ASSERT_TRUE(Exec("c1/fourth"));
  EXPECT_EQ(CodeOf(State("c1/second")), Code::kNotFound);
  EXPECT_EQ(backend_.Count("delete c1/second"), 1U);
  // One that never ran, too.
  backend_.FailNext("exec c1", Error{Code::kInternal, 0, "no such file", {}});
  ASSERT_FALSE(Start("c1/fourth"));
  ASSERT_TRUE(Exec("c1/fifth"));
  EXPECT_EQ(CodeOf(State("c1/fourth")), Code::kNotFound);
  EXPECT_EQ(CodeOf(Exec("c1/sixth")), Code::kResourceExhausted);
  End("c1/first", 0);
  ASSERT_TRUE(Exec("c1/sixth"));
  EXPECT_EQ(CodeOf(Exec("c1/seventh")), Code::kResourceExhausted);
  EXPECT_EQ(State("c1/third")->status(), pb::RUNNING);
  RestartEngine();
  EXPECT_EQ(CodeOf(State("c1/second")), Code::kNotFound);
  EXPECT_EQ(State("c1/third")->status(), pb::RUNNING);
}

}  // namespace
}  // namespace gantry::task
