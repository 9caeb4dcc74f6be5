// SPDX-License-Identifier: Apache-2.0
//
// What the flight recorder gets of a container's life.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>

#include "core/trace/recorder.h"
#include "core/trace/ring.h"
#include "tests/unit/task/task_test.h"

namespace gantry::task {
namespace {

using testing::Contains;
using testing::IsEmpty;
using testing::IsSupersetOf;

class TaskSteps : public TaskTest {
 protected:
  TaskSteps() { Open(); }

  void Open() {
    const Status opened = engine_->recorder().Open(dir_.path());
    EXPECT_TRUE(opened) << opened.error().message;
  }

  /// "call Create c1 ok", "backend start c1/e1 open", ...
  std::vector<std::string> Steps() const {
    std::vector<std::string> texts;
    const auto steps = trace::ReadRing(dir_.path());
    EXPECT_TRUE(steps) << steps.error().message;
    for (const trace::Step& step : *steps) {
      texts.push_back(Format("{} {}{} {}{} {}", trace::KindName(step.kind), step.what,
                             step.again ? " again" : "", step.id,
                             step.exec.empty() ? "" : "/" + step.exec,
                             !step.end                     ? "open"
                             : step.end->code == Code::kOk ? "ok"
                                                           : CodeName(step.end->code)));
    }
    return texts;
  }

  static std::vector<std::string> Of(std::vector<std::string> steps, const std::string& what) {
    std::erase_if(steps, [&](const std::string& step) { return !step.contains(what); });
    return steps;
  }
};

TEST_F(TaskSteps, AreThoseOfALife) {
  Run("c1");
  RunExec("c1/e1");
  End("c1/e1", 0);
  ASSERT_TRUE(Delete("c1/e1"));
  End("c1", 3);
  ASSERT_TRUE(Delete("c1"));

  EXPECT_THAT(Steps(),
              IsSupersetOf({"keeper announced c1 ok", "call Create c1 ok", "backend create c1 ok",
                            "call Start c1 ok", "backend start c1 ok", "call Exec c1/e1 ok",
                            "call Start c1/e1 ok", "backend start c1/e1 ok", "exit exit c1/e1 ok",
                            "exit exit c1 ok", "call Delete c1/e1 ok", "call Delete c1 ok",
                            "backend delete c1 ok"}));
  EXPECT_TRUE(std::ranges::none_of(
      Steps(), [](const std::string& step) { return step.ends_with(" open"); }));
}

TEST_F(TaskSteps, SayWhatFailed) {
  backend_.FailNext("create c1", Error{Code::kNotFound, 0, "no such root", {}});
  Announce("c1");
  ASSERT_FALSE(Create("c1"));

  EXPECT_THAT(Of(Steps(), "backend create c1"),
              Contains("backend create c1 " + std::string(CodeName(Code::kNotFound))));
  EXPECT_THAT(Of(Steps(), "call Create"),
              Contains("call Create c1 " + std::string(CodeName(Code::kNotFound))));
}

TEST_F(TaskSteps, AreOpenWhileTheyAreUnderWay) {
  Run("c1");
  const uint32_t wait = SendWait("c1");
  Turn();
  EXPECT_THAT(Steps(), Contains("call Wait c1 open"));
  End("c1", 0);
  ASSERT_TRUE(Take(wait));
  EXPECT_THAT(Steps(), Contains("call Wait c1 ok"));
}

TEST_F(TaskSteps, LeaveOutWhatOnlyAsks) {
  Run("c1");
  ASSERT_TRUE(State("c1"));
  ASSERT_TRUE(Pids("c1"));
  EXPECT_THAT(Of(Steps(), "State"), IsEmpty());
  EXPECT_THAT(Of(Steps(), "Pids"), IsEmpty());
  EXPECT_THAT(Of(Steps(), "list processes"), IsEmpty());
}

TEST_F(TaskSteps, GoOnWithTheNextEngine) {
  Run("c1");
  const uint32_t wait = SendWait("c1");
  Turn();
  EXPECT_FALSE(Answered(wait));

  RestartEngine();
  Open();
  ASSERT_TRUE(Kill("c1"));

  const auto steps = Steps();
  EXPECT_THAT(steps, IsSupersetOf({"call Create c1 ok", "call Wait c1 open", "call Kill c1 ok"}));
  EXPECT_LT(std::ranges::find(steps, "call Wait c1 open") - steps.begin(),
            std::ranges::find(steps, "call Kill c1 ok") - steps.begin());
}

}  // namespace
}  // namespace gantry::task
