// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/launch/canary_runs.h"

#include <sys/stat.h>

#include <atomic>
#include <future>
#include <latch>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

#include "tests/unit/gvisor/fakes.h"

namespace gantry::gvisor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ProofsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = os::TempDir::Create();
    ASSERT_TRUE(made);
    dir_ = std::move(*made);
    root_ = dir_.path() + "/state/runsc";
    runsc_.runsc.path = "/usr/bin/runsc";
    runsc_.sentry.path = "/usr/bin/runsc";
    runsc_.identity = {1, 2, 3, 4};
    runsc_.sentry_identity = {1, 2, 3, 4};
  }

  CanaryRuns Engine() {
    return CanaryRuns(
        [this](SandboxContext&, const Runsc&, const CanaryRequest&) {
          ++canaries_;
          return shown_;
        },
        [this] { return now_; });
  }

  Status Require(CanaryRuns& proofs) { return proofs.Require(context_, runsc_, root_, wanted_); }

  std::string File() const { return ProofPath(root_, runsc_.runsc.path, wanted_.platform); }

  static Status Failure(Code code) { return Fail(code, "boot the sentry: no"); }

  os::TempDir dir_;
  std::string root_;
  Runsc runsc_;
  FakeSandboxContext context_;
  CanaryRequest wanted_{.platform = "systrap", .directories = {}};
  int canaries_ = 0;
  Status shown_;
  std::chrono::steady_clock::time_point now_{};
};

TEST_F(ProofsTest, ReadsWhatWasWritten) {
  ASSERT_TRUE(WriteProof(root_, runsc_, "systrap", "boot \"the\" sentry\n"));
  const auto proof = ReadProof(root_, runsc_, "systrap");
  ASSERT_TRUE(proof);
  EXPECT_EQ(*proof,
            (Proof{runsc_.identity, runsc_.sentry_identity, "systrap", "boot \"the\" sentry\n"}));
  struct stat info{};
  ASSERT_EQ(stat(root_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700U);
  ASSERT_EQ(stat(File().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600U);
}

TEST_F(ProofsTest, KeepsASmallFile) {
  ASSERT_TRUE(WriteProof(root_, runsc_, "systrap", std::string(1 << 20, '\x01')));
  ASSERT_TRUE(ReadProof(root_, runsc_, "systrap"));
}

TEST_F(ProofsTest, IgnoresAProofOfOtherFiles) {
  ASSERT_TRUE(WriteProof(root_, runsc_, "systrap", ""));
  EXPECT_FALSE(ReadProof(root_, runsc_, "kvm"));
  runsc_.identity.changed_ns = 5;
  EXPECT_FALSE(ReadProof(root_, runsc_, "systrap"));
  runsc_.identity.changed_ns = 4;
  runsc_.sentry_identity.inode = 5;
  EXPECT_FALSE(ReadProof(root_, runsc_, "systrap"));
  // The next one takes its place.
  ASSERT_TRUE(WriteProof(root_, runsc_, "systrap", ""));
  EXPECT_TRUE(ReadProof(root_, runsc_, "systrap"));
  EXPECT_EQ(NamesIn(root_).size(), 1U);
}

TEST_F(ProofsTest, IgnoresADamagedProof) {
  EXPECT_FALSE(ReadProof(root_, runsc_, "systrap"));
  ASSERT_TRUE(WriteProof(root_, runsc_, "systrap", ""));
  const std::string good = *ReadFile(File(), kMaxProofBytes);
  for (const std::string& bad :
       {std::string(), std::string("[]"), std::string("null"), good.substr(0, good.size() / 2),
        std::string(R"({"version":1,"runsc":[1,2],"sentry":[],"platform":"x","failure":""})"),
        std::string(R"({"version":2,"runsc":[1,2,3,4],"sentry":[1,2,3,4],)"
                    R"("platform":"systrap","failure":""})"),
        std::string(kMaxProofBytes + 1, ' ')}) {
    ASSERT_TRUE(WriteFile(File(), bad, 0600));
    EXPECT_FALSE(ReadProof(root_, runsc_, "systrap")) << bad.substr(0, 100);
  }
}

TEST_F(ProofsTest, OneCanaryIsEnoughForAllEngines) {
  for (int engine = 0; engine < 2; ++engine) {
    CanaryRuns proofs = Engine();
    EXPECT_TRUE(Require(proofs));
    EXPECT_TRUE(Require(proofs));
  }
  EXPECT_EQ(canaries_, 1);
}

TEST_F(ProofsTest, AReplacedBuildIsProvedAgain) {
  CanaryRuns proofs = Engine();
  EXPECT_TRUE(Require(proofs));
  runsc_.identity.inode = 9;
  EXPECT_TRUE(Require(proofs));
  wanted_.platform = "kvm";
  EXPECT_TRUE(Require(proofs));
  EXPECT_EQ(canaries_, 3);
}

TEST_F(ProofsTest, AFailureIsKeptForAWhile) {
  CanaryRuns proofs = Engine();
  shown_ = Failure(Code::kFailedPrecondition);
  for (int pod = 0; pod < 3; ++pod) {
    const Status required = Require(proofs);
    ASSERT_FALSE(required);
    EXPECT_EQ(required.error().message, "boot the sentry: no");
  }
  EXPECT_EQ(canaries_, 1);
  EXPECT_THAT(context_.log, ElementsAre("boot the sentry: no"));
  EXPECT_EQ(ReadProof(root_, runsc_, "systrap")->failure, "boot the sentry: no");
  shown_ = {};
  now_ += kNextCanary;
  EXPECT_TRUE(Require(proofs));
  EXPECT_EQ(canaries_, 2);
  EXPECT_EQ(ReadProof(root_, runsc_, "systrap")->failure, "");
}

TEST_F(ProofsTest, TheNextEngineTriesAgainWhatFailed) {
  shown_ = Failure(Code::kFailedPrecondition);
  CanaryRuns before = Engine();
  EXPECT_FALSE(Require(before));
  shown_ = {};
  CanaryRuns after = Engine();
  EXPECT_TRUE(Require(after));
}

TEST_F(ProofsTest, WhatShowsNothingIsNotKept) {
  CanaryRuns proofs = Engine();
  shown_ = Failure(Code::kDeadlineExceeded);
  EXPECT_FALSE(Require(proofs));
  EXPECT_THAT(NamesIn(root_), IsEmpty());
  shown_ = {};
  EXPECT_TRUE(Require(proofs));
}

TEST_F(ProofsTest, WithoutAFileItIsProvedNevertheless) {
  ASSERT_TRUE(WriteFile(dir_.path() + "/state", "in the way", 0600));
  CanaryRuns proofs = Engine();
  EXPECT_TRUE(Require(proofs));
  EXPECT_THAT(context_.log, ElementsAre("'/usr/bin/runsc' starts sandboxes: a canary took 0 ms",
                                        HasSubstr("the next engine will run a canary again")));
}

TEST_F(ProofsTest, ManyPodsAtOnceRunOneCanary) {
  constexpr int kPods = 100;
  std::latch all_there(kPods);
  std::atomic<int> canaries = 0;
  CanaryRuns proofs([&](SandboxContext&, const Runsc&, const CanaryRequest&) {
    ++canaries;
    all_there.wait();
    return Status();
  });
  std::vector<std::future<bool>> pods;
  for (int pod = 0; pod < kPods; ++pod) {
    pods.push_back(std::async(std::launch::async, [&] {
      all_there.count_down();
      return Require(proofs).has_value();
    }));
  }
  for (std::future<bool>& pod : pods) {
    EXPECT_TRUE(pod.get());
  }
  EXPECT_EQ(canaries, 1);
}

TEST_F(ProofsTest, AnotherPodsCanaryIsNotAwaitedForEver) {
  std::promise<void> begun;
  std::promise<void> may_end;
  CanaryRuns proofs([&](SandboxContext&, const Runsc&, const CanaryRequest&) {
    begun.set_value();
    may_end.get_future().wait();
    return Status();
  });
  auto first = std::async(std::launch::async, [&] { return Require(proofs).has_value(); });
  begun.get_future().wait();
  FakeSandboxContext hurried;
  hurried.time_left = std::chrono::milliseconds(0);
  const Status late = proofs.Require(hurried, runsc_, root_, wanted_);
  may_end.set_value();
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::kDeadlineExceeded);
  EXPECT_TRUE(first.get());
}

}  // namespace
}  // namespace gantry::gvisor
