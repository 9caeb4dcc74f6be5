// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/machine/canary.h"

#include <atomic>
#include <future>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"
#include "tests/unit/vmm/machine/deadlines.h"

namespace gantry::vmm {
namespace {

using testing::HasSubstr;

class CanaryTest : public testing::Test {
 protected:
  CanaryRuns Engine() {
    return CanaryRuns(
        folder_.path() + "/keep",
        [this](const KvmQuestion& question) {
          last_ = question;
          ++runs_;
          return shown_;
        },
        [this] { return std::chrono::steady_clock::now() + later_.load(); });
  }

  std::function<Result<CanaryQuestion>()> Ask() {
    return [this]() -> Result<CanaryQuestion> {
      CanaryQuestion asked;
      asked.question = Question();
      return asked;
    };
  }

  KvmQuestion Question() const { return {.canary = "/c", .qemu = file_, .kernel = file_}; }

  os::TempDir folder_ = os::TempDir::Create().value();
  std::string file_ = folder_.path() + "/qemu";
  Acceleration shown_ = {.accelerator = Accelerator::kKvm, .words = "KVM works (test)"};
  std::atomic<int> runs_ = 0;
  std::atomic<std::chrono::minutes> later_{std::chrono::minutes(0)};
  KvmQuestion last_;
};

TEST_F(CanaryTest, RunsOnceForAllWhoAskAndForTheNextEngine) {
  ASSERT_TRUE(WriteFile(file_, "1", 0700));
  {
    CanaryRuns engine = Engine();
    engine.Begin(Ask());
    engine.Begin(Ask());
    for (int i = 0; i < 3; ++i) {
      const auto found = engine.Await(Soon());
      ASSERT_TRUE(found) << found.error().message;
      EXPECT_EQ(found->words, "KVM works (test)");
    }
  }
  CanaryRuns next = Engine();
  next.Begin(Ask());
  EXPECT_EQ(next.Await(Soon())->accelerator, Accelerator::kKvm);
  EXPECT_EQ(runs_, 1);
}

TEST_F(CanaryTest, RunsAgainForAnotherVmm) {
  ASSERT_TRUE(WriteFile(file_, "1", 0700));
  CanaryRuns engine = Engine();
  engine.Begin(Ask());
  ASSERT_TRUE(engine.Await(Soon()));
  ASSERT_TRUE(RemoveFile(file_));
  ASSERT_TRUE(WriteFile(file_, "22", 0700));
  CanaryRuns next = Engine();
  next.Begin(Ask());
  ASSERT_TRUE(next.Await(Soon()));
  EXPECT_EQ(runs_, 2);
}

TEST_F(CanaryTest, WhatDidNotWorkIsTriedAgain) {
  shown_ = {.accelerator = Accelerator::kTcg, .words = "KVM is not used: it hangs"};
  CanaryRuns engine = Engine();
  engine.Begin(Ask());
  ASSERT_EQ(engine.Await(Soon())->accelerator, Accelerator::kTcg);
  ASSERT_EQ(engine.Await(Soon())->accelerator, Accelerator::kTcg);
  EXPECT_EQ(runs_, 1) << "not for each pod";
  shown_ = {.accelerator = Accelerator::kKvm, .words = "KVM works"};
  later_ = kNextCanary;
  EXPECT_EQ(engine.Await(Soon())->accelerator, Accelerator::kTcg) << "no pod waits for it";
  Result<Acceleration> found = engine.Await(Soon());
  const auto until = Soon();
  while (found->accelerator != Accelerator::kKvm && std::chrono::steady_clock::now() < until) {
    found = engine.Await(Soon());
  }
  EXPECT_EQ(found->accelerator, Accelerator::kKvm);
  EXPECT_EQ(runs_, 2);
}

TEST_F(CanaryTest, WhatDidNotWorkIsBelievedByTheNextEngineForAWhile) {
  shown_ = {.accelerator = Accelerator::kTcg, .words = "KVM is not used: it hangs"};
  for (int i = 0; i < 2; ++i) {
    CanaryRuns engine = Engine();
    engine.Begin(Ask());
    EXPECT_EQ(engine.Await(Soon())->words, shown_.words);
  }
  EXPECT_EQ(runs_, 1) << "an engine that starts again would wait for what hangs";
  later_ = kNextCanary;
  CanaryRuns engine = Engine();
  engine.Begin(Ask());
  ASSERT_TRUE(engine.Await(Soon()));
  EXPECT_EQ(runs_, 2);
}

TEST_F(CanaryTest, WhoCannotWaitIsToldThatItRuns) {
  std::promise<void> go;
  CanaryRuns engine(folder_.path() + "/keep", [&go](const KvmQuestion&) {
    go.get_future().wait();
    return Acceleration{.words = "no"};
  });
  engine.Begin(Ask());
  const auto early = engine.Await(In(std::chrono::milliseconds(20)));
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, Code::kDeadlineExceeded);
  go.set_value();
  EXPECT_TRUE(engine.Await(Soon()));
}

TEST_F(CanaryTest, NobodyWaitsForOneThatNobodyBegan) {
  CanaryRuns engine = Engine();
  EXPECT_EQ(engine.Await(Soon()).error().code, Code::kFailedPrecondition);
}

TEST_F(CanaryTest, AQuestionThatCannotBeAskedIsNoKvm) {
  CanaryRuns engine = Engine();
  engine.Begin([]() -> Result<CanaryQuestion> { return Fail(Code::kNotFound, "no canary"); });
  const auto found = engine.Await(Soon());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->accelerator, Accelerator::kTcg);
  EXPECT_THAT(found->words, HasSubstr("no canary"));
}

TEST_F(CanaryTest, ALookIsShortAndKnowsWhatAnEngineFoundOut) {
  CanaryRuns doctor = Engine();
  EXPECT_EQ(doctor.Look(Question()).words, "KVM works (test)");
  EXPECT_EQ(last_.qemu, "") << "a guest's boot is too long for a look";
  shown_.words = "KVM works, and a kernel boots in it";
  CanaryRuns engine = Engine();
  engine.Begin(Ask());
  ASSERT_TRUE(engine.Await(Soon()));
  shown_.words = "not asked";
  EXPECT_EQ(doctor.Look(Question()).words, "KVM works, and a kernel boots in it");
}

TEST_F(CanaryTest, ADamagedFileIsNone) {
  ASSERT_TRUE(os::MakeDirs(folder_.path() + "/keep", 0700));
  ASSERT_TRUE(WriteFile(folder_.path() + "/keep/kvm", "\xff\xff\xff", 0600));
  CanaryRuns engine = Engine();
  engine.Begin(Ask());
  ASSERT_TRUE(engine.Await(Soon()));
  EXPECT_EQ(runs_, 1);
}

TEST(Decide, TakesKvmWhereItWorksAndTcgOnlyWithQemu) {
  const Acceleration kvm = {.accelerator = Accelerator::kKvm, .words = "KVM works"};
  const Acceleration none = {.words = "KVM is not used: open /dev/kvm"};
  EXPECT_EQ(Decide({}, kvm), Accelerator::kKvm);
  EXPECT_EQ(Decide({}, none), Accelerator::kTcg);
  EXPECT_EQ(Decide({.accelerator = AcceleratorChoice::kTcg}, kvm), Accelerator::kTcg);
  for (const VmmOptions& options :
       {VmmOptions{.accelerator = AcceleratorChoice::kKvm}, VmmOptions{.vmm = Vmm::kFirecracker}}) {
    const auto refused = Decide(options, none);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kFailedPrecondition);
    EXPECT_THAT(refused.error().message, HasSubstr("open /dev/kvm"));
  }
}

}  // namespace
}  // namespace gantry::vmm
