// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/testing/sandbox_context.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/oom_score.h>

namespace gantry {
namespace {

using testing::Eq;
using testing::IsEmpty;
using testing::Optional;

constexpr int kOfPause = -998;

TEST(OomScores, OfASandboxAreItsRootsAsLongAsThatIsAlone) {
  OomScores scores;
  EXPECT_THAT(scores.OfSandbox(), Eq(std::nullopt));
  scores.SetRoot(kOfPause);
  EXPECT_THAT(scores.OfSandbox(), Optional(kOfPause));
}

TEST(OomScores, OfASandboxAreTheLowestOfItsFurtherContainers) {
  OomScores scores;
  scores.SetRoot(kOfPause);
  scores.Add("c1", 1000);
  EXPECT_THAT(scores.OfSandbox(), Optional(1000)) << "the pause container's is not the pod's";
  scores.Add("c2", 3);
  EXPECT_THAT(scores.OfSandbox(), Optional(3));
  scores.Add("c3", std::nullopt);
  EXPECT_THAT(scores.OfSandbox(), Optional(kOomScore));
  scores.Remove("c3");
  scores.Add("c2", 1000);
  EXPECT_THAT(scores.OfSandbox(), Optional(1000));
  scores.Remove("c1");
  scores.Remove("c2");
  EXPECT_THAT(scores.OfSandbox(), Optional(kOfPause));
}

class SetOomScoreTest : public testing::Test {
 protected:
  SetOomScoreTest() {
    SpawnRequest request;
    request.argv = {"/bin/sleep", "1000"};
    process_ = *context_.Spawn(std::move(request));
  }

  std::string Score() const {
    return ReadFile(Format("/proc/{}/oom_score_adj", process_->pid().value), 16).value_or("");
  }

  FakeSandboxContext context_;
  std::shared_ptr<HostProcess> process_;
};

TEST_F(SetOomScoreTest, ChangesTheProcess) {
  SetOomScore(context_, *process_, 700);
  EXPECT_EQ(Score(), "700\n");
  SetOomScore(context_, *process_, std::nullopt);
  EXPECT_EQ(Score(), "700\n");
  EXPECT_THAT(context_.log, IsEmpty());
}

TEST_F(SetOomScoreTest, SaysWhatTheKernelRefuses) {
  SetOomScore(context_, *process_, 1001);
  EXPECT_THAT(context_.log, testing::SizeIs(1));
}

TEST_F(SetOomScoreTest, LeavesAloneWhatHasEnded) {
  ASSERT_TRUE(process_->Signal(SIGKILL));
  ASSERT_TRUE(process_->Wait(std::chrono::seconds(10)));
  SetOomScore(context_, *process_, 700);
  EXPECT_THAT(context_.log, IsEmpty());
}

}  // namespace
}  // namespace gantry
