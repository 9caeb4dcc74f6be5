// SPDX-License-Identifier: Apache-2.0
//
// Calls of a backend that do not return.
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/config/config.h"
#include "tests/unit/task/task_test.h"

namespace gantry::task {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;

class TaskHanging : public TaskTest {
 protected:
  TaskHanging() {
    config::Timeouts& timeouts = around_.config.timeouts;
    timeouts.start = timeouts.remove = milliseconds(20);
    around_.overdue_after = milliseconds(20);
    around_.config.limits.worker_threads = 1;
    config::Handler other;
    other.backend = "other";
    around_.config.handlers["other"] = other;
    RestartEngine();
  }

  /// By another backend than all others are.
  Result<pb::CreateTaskResponse> CreateElsewhere(const std::string& id) {
    pb::CreateTaskRequest request = CreateRequest(id);
    request.mutable_options()->set_type_url("runtimeoptions.v1.Options");
    // Field 3, the table.
    const std::string table = "Handler = 'other'\n";
    request.mutable_options()->set_value(std::string("\x1a") + static_cast<char>(table.size()) +
                                         table);
    return Ask<pb::CreateTaskResponse>("Create", request, id);
  }

  /// The answer names backend, call and container.
  static void ExpectBlamed(const Result<pb::StartResponse>& answer) {
    EXPECT_EQ(CodeOf(answer), Code::kDeadlineExceeded);
    EXPECT_THAT(MessageOf(answer), AllOf(HasSubstr("backend 'runc'"), HasSubstr("start 'c1'")));
  }
};

TEST_F(TaskHanging, IsAnsweredAndGoesOn) {
  Announce("c1");
  ASSERT_TRUE(Create("c1"));
  backend_.Hold("start c1");
  ExpectBlamed(Start("c1"));
  EXPECT_TRUE(backend_.Held("start c1"));
  EXPECT_EQ(State("c1")->status(), pb::CREATED);
  backend_.Release("start c1");
  ASSERT_TRUE(Until([&] { return State("c1")->status() == pb::RUNNING; }));
  End("c1", 0);
}

TEST_F(TaskHanging, IsSaidToWhoWaitsForIt) {
  Announce("c1");
  ASSERT_TRUE(Create("c1"));
  backend_.Hold("start c1");
  const uint32_t start = SendStart("c1");
  ASSERT_TRUE(Until([&] { return backend_.Held("start c1"); }));
  const auto deleted = Delete("c1");
  EXPECT_EQ(CodeOf(deleted), Code::kDeadlineExceeded);
  EXPECT_THAT(MessageOf(deleted), HasSubstr("start 'c1'"));
  EXPECT_EQ(backend_.Count("delete c1"), 0U) << "one call at a time";
  ASSERT_TRUE(Until([&] { return Answered(start); }));
  backend_.Release("start c1");
}

TEST_F(TaskHanging, LeavesOtherBackendsTheirWorkers) {
  Announce("c1");
  Announce("c2");
  ASSERT_TRUE(Create("c1"));
  backend_.Hold("start c1");
  const uint32_t start = SendStart("c1");
  ASSERT_TRUE(Until([&] { return backend_.Held("start c1"); }));
  ASSERT_TRUE(CreateElsewhere("c2"));
  EXPECT_TRUE(Start("c2"));
  EXPECT_TRUE(backend_.Held("start c1"));
  ExpectBlamed(TakeAs<pb::StartResponse>(start));
}

class TaskShare : public TaskTest {
 protected:
  TaskShare() {
    around_.config.limits.worker_threads = 2;
    around_.config.limits.max_queued_calls_per_sandbox = 1;
    RestartEngine();
  }
};

TEST_F(TaskShare, OneSandboxLeavesAWorkerToTheOthers) {
  Run("c1");
  Run("c2");
  ASSERT_TRUE(Exec("c1/e1"));
  ASSERT_TRUE(Exec("c1/e2"));
  ASSERT_TRUE(Exec("c1/e3"));
  backend_.Hold("start c1/e1");
  const uint32_t first = SendStart("c1/e1");
  ASSERT_TRUE(Until([&] { return backend_.Held("start c1/e1"); }));
  // One of these waits, whichever has its streams sooner; the other is refused.
  uint32_t waits = SendStart("c1/e2");
  uint32_t refused = SendStart("c1/e3");
  ASSERT_TRUE(Until([&] { return Answered(waits) || Answered(refused); }));
  if (Answered(waits)) {
    std::swap(waits, refused);
  }
  EXPECT_EQ(backend_.Count("exec c1 e2") + backend_.Count("exec c1 e3"), 0U);
  const auto answer = TakeAs<pb::StartResponse>(refused);
  EXPECT_EQ(CodeOf(answer), Code::kResourceExhausted);
  EXPECT_THAT(MessageOf(answer), HasSubstr("limits.max_queued_calls_per_sandbox"));
  RunExec("c2/e1");
  EXPECT_FALSE(Answered(first) || Answered(waits));
  EXPECT_TRUE(State("c1"));
  backend_.Release("start c1/e1");
  EXPECT_TRUE(TakeAs<pb::StartResponse>(first));
  EXPECT_TRUE(TakeAs<pb::StartResponse>(waits));
}

TEST_F(TaskShare, ExecsAboveTheBytesOfASandboxAreRefused) {
  Run("c1");
  Run("c2");
  around_.config.limits.max_bytes_per_sandbox = 300;
  RestartEngine();
  ASSERT_TRUE(Exec("c1/e1"));
  const auto refused = Exec("c1/e2");
  EXPECT_EQ(CodeOf(refused), Code::kResourceExhausted);
  EXPECT_THAT(MessageOf(refused), HasSubstr("limits.max_bytes_per_sandbox"));
  EXPECT_TRUE(Exec("c2/e1"));
}

}  // namespace
}  // namespace gantry::task
