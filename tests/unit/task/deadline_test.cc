// SPDX-License-Identifier: Apache-2.0
//
// What a backend is told of the time that a call has. The limits are minutes
// apart, so that no slow machine takes one for another.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/config/config.h"
#include "tests/unit/task/task_test.h"

namespace gantry::task {
namespace {

using std::chrono::minutes;
using testing::AllOf;
using testing::Gt;
using testing::Le;

class TaskDeadline : public TaskTest {
 protected:
  TaskDeadline() {
    config::Timeouts& timeouts = around_.config.timeouts;
    timeouts.create = minutes(20);
    timeouts.start = minutes(25);
    timeouts.exec_start = minutes(30);
    timeouts.remove = minutes(35);
    RestartEngine();
  }

  /// Of a container and an exec.
  void LiveAndEnd() {
    Run("c1");
    RunExec("c1/e1");
    End("c1/e1", 0);
    ASSERT_TRUE(Delete("c1/e1"));
    End("c1", 0);
    ASSERT_TRUE(Delete("c1"));
  }

  void ExpectLeft(const std::string& call, minutes limit) {
    EXPECT_THAT(backend_.LeftFor(call), AllOf(Gt(limit - minutes(5)), Le(limit))) << call;
  }
};

TEST_F(TaskDeadline, IsThatOfTheConfiguration) {
  LiveAndEnd();
  ExpectLeft("create c1", minutes(20));
  ExpectLeft("start c1", minutes(25));
  ExpectLeft("exec c1", minutes(30));
  ExpectLeft("start c1/e1", minutes(30));
  ExpectLeft("delete c1/e1", minutes(35));
  ExpectLeft("delete c1", minutes(35));
}

TEST_F(TaskDeadline, IsTheCallersWhereThatIsShorter) {
  callers_timeout_ = minutes(10);
  LiveAndEnd();
  for (const char* call :
       {"create c1", "start c1", "exec c1", "start c1/e1", "delete c1/e1", "delete c1"}) {
    ExpectLeft(call, minutes(10));
  }
}

TEST_F(TaskDeadline, IsTheConfigurationsWhereTheCallersIsLonger) {
  callers_timeout_ = minutes(100);
  Announce("c1");
  ASSERT_TRUE(Create("c1"));
  ExpectLeft("create c1", minutes(20));
}

TEST_F(TaskDeadline, OfTheKeepersDeleteIsTheConfigurations) {
  callers_timeout_ = minutes(10);
  Run("c1");
  keeper_.AskToDelete(77, 1);
  ASSERT_TRUE(Until([&] { return !keeper_.deleted.empty(); }));
  ExpectLeft("delete c1", minutes(35));
}

}  // namespace
}  // namespace gantry::task
