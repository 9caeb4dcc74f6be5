// SPDX-License-Identifier: Apache-2.0
//
// What is counted for the metrics, by calls as containerd makes them.
#include "core/metrics/figures.h"

#include <numeric>

#include <gtest/gtest.h>

#include "tests/unit/task/task_test.h"

namespace gantry::task {
namespace {

class TaskFigures : public TaskTest {
 protected:
  const metrics::Figures& figures() const { return engine_->tasks().figures(); }

  struct Counted {
    uint64_t calls = 0;
    uint64_t failures = 0;

    bool operator==(const Counted&) const = default;
  };

  Counted Of(const std::string& call, const std::string& process,
             const std::string& backend = "runc") const {
    const auto found = figures().calls.find({backend, call, process});
    if (found == figures().calls.end()) {
      return {};
    }
    const auto& buckets = found->second.took.buckets();
    return {std::accumulate(buckets.begin(), buckets.end(), uint64_t{0}), found->second.failures};
  }

  uint64_t Exits(bool exec, metrics::Ending ending) const {
    const auto found = figures().exits.find({"runc", exec, ending});
    return found == figures().exits.end() ? 0 : found->second;
  }
};

TEST_F(TaskFigures, CountCallsByBackendAndWhatTheyAreAbout) {
  Run("c1");
  RunExec("c1/e1");
  End("c1/e1", 0);
  ASSERT_TRUE(Delete("c1/e1"));
  ASSERT_TRUE(State("c1"));
  ASSERT_TRUE(Kill("c1"));
  End("c1", 137);
  ASSERT_TRUE(Delete("c1"));
  EXPECT_EQ(Of("Create", "init"), (Counted{1, 0})) << "though there was no sandbox when it came";
  EXPECT_EQ(Of("Start", "init"), (Counted{1, 0}));
  EXPECT_EQ(Of("Exec", "exec"), (Counted{1, 0}));
  EXPECT_EQ(Of("Start", "exec"), (Counted{1, 0}));
  EXPECT_EQ(Of("Delete", "exec"), (Counted{1, 0}));
  EXPECT_EQ(Of("Kill", "init"), (Counted{1, 0}));
  EXPECT_EQ(Of("Delete", "init"), (Counted{1, 0})) << "though there is no sandbox any more";
}

TEST_F(TaskFigures, CountFailures) {
  Announce("c1");
  ASSERT_TRUE(Create("c1"));
  backend_.FailNext("start c1", Error{Code::kNotFound, 0, "no such program", {}});
  EXPECT_FALSE(Start("c1"));
  EXPECT_TRUE(Start("c1"));
  EXPECT_EQ(Of("Start", "init"), (Counted{2, 1}));
  EXPECT_FALSE(Start("c1/none"));
  EXPECT_EQ(Of("Start", "exec"), (Counted{1, 1}));
}

TEST_F(TaskFigures, HaveNoBackendWhereNoneWasFound) {
  around_.backend_error = "no such plugin";
  RestartEngine();
  Announce("c1");
  EXPECT_FALSE(Create("c1"));
  EXPECT_EQ(Of("Create", "init", ""), (Counted{1, 1}));
}

TEST_F(TaskFigures, LeaveOutCallsThatWaitForAnEnd) {
  Run("c1");
  const uint32_t wait = SendWait("c1");
  End("c1", 0);
  ASSERT_TRUE(Take(wait));
  EXPECT_EQ(Of("Wait", "init"), Counted());
}

TEST_F(TaskFigures, CountEndsByTheirKind) {
  using metrics::Ending;
  Run("c1");
  RunExec("c1/e1");
  RunExec("c1/e2");
  End("c1/e1", 0);
  End("c1/e2", 5);
  End("c1", 143);
  EXPECT_EQ(Exits(true, Ending::kZero), 1U);
  EXPECT_EQ(Exits(true, Ending::kNonZero), 1U);
  EXPECT_EQ(Exits(false, Ending::kSignal), 1U);
  EXPECT_EQ(figures().exits.size(), 3U);
}

TEST_F(TaskFigures, CountMemoryThatRanOut) {
  ContainerContext* context = nullptr;
  backend_.UseContext([&](ContainerContext& of, bool) {
    context = &of;
    return Status();
  });
  Run("c1");
  context->OutOfMemory();
  End("c1", 137);
  EXPECT_EQ(figures().out_of_memory, (std::map<std::string, uint64_t>{{"runc", 1}}));
  EXPECT_EQ(Exits(false, metrics::Ending::kOutOfMemory), 1U);
}

TEST_F(TaskFigures, BeginAtZeroAndCountNoEndTwice) {
  Run("c1");
  End("c1", 0);
  RestartEngine();
  ASSERT_TRUE(State("c1"));
  EXPECT_TRUE(figures().exits.empty());
  EXPECT_EQ(Of("Create", "init"), Counted());
  EXPECT_EQ(Of("State", "init"), (Counted{1, 0}));
}

}  // namespace
}  // namespace gantry::task
