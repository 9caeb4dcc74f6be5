// SPDX-License-Identifier: Apache-2.0
//
// How many execs a container has, and how large they are.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/config/config.h"
#include "tests/unit/task/task_test.h"

namespace gantry::task {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class TaskExecLimits : public TaskTest {
 protected:
  /// With an environment of so many bytes.
  Result<wire::Empty> ExecWith(const std::string& exec, size_t bytes,
                               const std::string& container = "c1") {
    pb::ExecProcessRequest request;
    request.set_id(container);
    request.set_exec_id(exec);
    request.mutable_spec()->set_value(R"({"args":["true"],"cwd":"/","env":["X=)" +
                                      std::string(bytes, 'x') + R"("]})");
    return Ask<wire::Empty>("Exec", request, container);
  }

  /// How many of these it may have.
  int Fill(const std::string& container, size_t each) {
    int taken = 0;
    while (taken < 100 && ExecWith("e" + std::to_string(taken), each, container)) {
      ++taken;
    }
    return taken;
  }
};

TEST_F(TaskExecLimits, OfAllLeaveToEachItsShare) {
  around_.config.limits.max_exec_bytes = 1'000'000;
  RestartEngine();
  for (const char* name : {"c1", "c2", "c3"}) {
    Run(name);
  }
  constexpr size_t kEach = 39'000;
  // With what is around it each takes a little more.
  EXPECT_EQ(Fill("c1", kEach), 12) << "half of it";
  EXPECT_EQ(Fill("c2", kEach), 6) << "half of what that one has left";
  EXPECT_EQ(Fill("c3", kEach), 3);
  const auto refused = ExecWith("more", kEach, "c3");
  EXPECT_EQ(CodeOf(refused), Code::kResourceExhausted);
  EXPECT_THAT(MessageOf(refused), AllOf(HasSubstr("exec 'more' in container 'c3'"),
                                        HasSubstr("limits.max_exec_bytes")));
  EXPECT_TRUE(ExecWith("small", 100, "c3"));
  // Over a restart, too; and what has ended makes room, though nobody deletes it.
  RestartEngine();
  EXPECT_EQ(CodeOf(ExecWith("more", kEach, "c2")), Code::kResourceExhausted);
  for (int i = 0; i < 12; ++i) {
    ASSERT_TRUE(Start("c1/e" + std::to_string(i)));
    End("c1/e" + std::to_string(i), 0);
  }
  EXPECT_TRUE(ExecWith("more", kEach, "c2"));
}

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
                    HasSubstr("its execs would have"), HasSubstr("read again")))
      << "before anything could write them";
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
