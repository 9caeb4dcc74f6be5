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

  KvmQuestion Question() const { return {.canary = {}, .qemu = file_, .kernel = file_}; }

  KvmQuestion QuestionWith(const std::string& kernel) {
    const std::string path = folder_.path() + "/" + kernel;
    EXPECT_TRUE(WriteFile(path, kernel, 0644));
    return {.canary = {}, .qemu = file_, .kernel = path};
  }

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
    EXPECT_TRUE(engine.Begin(Question()));
    EXPECT_TRUE(engine.Begin(Question()));
    for (int i = 0; i < 3; ++i) {
      const auto found = engine.Await(Question(), Soon());
      ASSERT_TRUE(found) << found.error().message;
      EXPECT_EQ(found->words, "KVM works (test)");
    }
  }
  CanaryRuns next = Engine();
  EXPECT_TRUE(next.Begin(Question()));
  EXPECT_EQ(next.Await(Question(), Soon())->accelerator, Accelerator::kKvm);
  EXPECT_EQ(runs_, 1);
}

TEST_F(CanaryTest, RunsAgainForAnotherVmm) {
  ASSERT_TRUE(WriteFile(file_, "1", 0700));
  CanaryRuns engine = Engine();
  EXPECT_TRUE(engine.Begin(Question()));
  ASSERT_TRUE(engine.Await(Question(), Soon()));
  ASSERT_TRUE(RemoveFile(file_));
  ASSERT_TRUE(WriteFile(file_, "22", 0700));
  CanaryRuns next = Engine();
  EXPECT_TRUE(next.Begin(Question()));
  ASSERT_TRUE(next.Await(Question(), Soon()));
  EXPECT_EQ(runs_, 2);
}

TEST_F(CanaryTest, WhatDidNotWorkIsTriedAgain) {
  shown_ = {.accelerator = Accelerator::kTcg, .words = "KVM is not used: it hangs"};
  CanaryRuns engine = Engine();
  EXPECT_TRUE(engine.Begin(Question()));
  ASSERT_EQ(engine.Await(Question(), Soon())->accelerator, Accelerator::kTcg);
  ASSERT_EQ(engine.Await(Question(), Soon())->accelerator, Accelerator::kTcg);
  EXPECT_EQ(runs_, 1) << "not for each pod";
  shown_ = {.accelerator = Accelerator::kKvm, .words = "KVM works"};
  later_ = kNextCanary;
  EXPECT_EQ(engine.Await(Question(), Soon())->accelerator, Accelerator::kTcg)
      << "no pod waits for it";
  Result<Acceleration> found = engine.Await(Question(), Soon());
  const auto until = Soon();
  while (found->accelerator != Accelerator::kKvm && std::chrono::steady_clock::now() < until) {
    found = engine.Await(Question(), Soon());
  }
  EXPECT_EQ(found->accelerator, Accelerator::kKvm);
  EXPECT_EQ(runs_, 2);
}

TEST_F(CanaryTest, WhatDidNotWorkIsBelievedByTheNextEngineForAWhile) {
  shown_ = {.accelerator = Accelerator::kTcg, .words = "KVM is not used: it hangs"};
  for (int i = 0; i < 2; ++i) {
    CanaryRuns engine = Engine();
    EXPECT_TRUE(engine.Begin(Question()));
    EXPECT_EQ(engine.Await(Question(), Soon())->words, shown_.words);
  }
  EXPECT_EQ(runs_, 1) << "an engine that starts again would wait for what hangs";
  later_ = kNextCanary;
  CanaryRuns engine = Engine();
  EXPECT_TRUE(engine.Begin(Question()));
  ASSERT_TRUE(engine.Await(Question(), Soon()));
  EXPECT_EQ(runs_, 2);
}

TEST_F(CanaryTest, WhoCannotWaitIsToldThatItRuns) {
  std::promise<void> go;
  CanaryRuns engine(folder_.path() + "/keep", [&go](const KvmQuestion&) {
    go.get_future().wait();
    return Acceleration{.words = "no"};
  });
  EXPECT_TRUE(engine.Begin(Question()));
  const auto early = engine.Await(Question(), In(std::chrono::milliseconds(20)));
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, Code::kDeadlineExceeded);
  go.set_value();
  EXPECT_TRUE(engine.Await(Question(), Soon()));
}

TEST_F(CanaryTest, EachKernelIsTriedOnce) {
  ASSERT_TRUE(WriteFile(file_, "1", 0700));
  const KvmQuestion good = QuestionWith("good");
  const KvmQuestion hangs = QuestionWith("hangs");
  const auto engine = [&] {
    return CanaryRuns(folder_.path() + "/keep", [&](const KvmQuestion& question) {
      ++runs_;
      return question.kernel == good.kernel ? shown_ : Acceleration{.words = "it hangs"};
    });
  };
  for (int i = 0; i < 2; ++i) {
    CanaryRuns one = engine();
    EXPECT_TRUE(one.Begin(good));
    EXPECT_EQ(one.Await(hangs, Soon())->words, "it hangs") << "nobody had begun it";
    EXPECT_EQ(one.Await(good, Soon())->accelerator, Accelerator::kKvm);
  }
  EXPECT_EQ(runs_, 2) << "the next engine knows both";
}

TEST_F(CanaryTest, ManyKernelsAreNotAllRemembered) {
  ASSERT_TRUE(WriteFile(file_, "1", 0700));
  CanaryRuns engine = Engine();
  for (size_t i = 0; i < 3 * CanaryRuns::kMaxKnown; ++i) {
    ASSERT_TRUE(engine.Await(QuestionWith(std::to_string(i)), Soon()));
  }
  const auto kept = ReadFile(folder_.path() + "/keep/kvm", 1 << 20);
  ASSERT_TRUE(kept);
  EXPECT_LT(kept->size(), CanaryRuns::kMaxKnown * 256);
}

TEST_F(CanaryTest, MoreThanThatAreNotTriedAtOnce) {
  std::promise<void> go;
  const std::shared_future<void> gone = go.get_future().share();
  CanaryRuns engine(folder_.path() + "/keep", [gone](const KvmQuestion&) {
    gone.wait();
    return Acceleration{.words = "no"};
  });
  for (size_t i = 0; i < CanaryRuns::kMaxKnown; ++i) {
    ASSERT_TRUE(engine.Begin(QuestionWith(std::to_string(i))));
  }
  EXPECT_EQ(engine.Begin(QuestionWith("another")).error().code, Code::kResourceExhausted);
  go.set_value();
}

TEST_F(CanaryTest, WhatAnEngineThatEndsHasKilledIsNotBelieved) {
  std::promise<void> asked;
  std::promise<void> killed;
  CanaryRuns engine(folder_.path() + "/keep", [&](const KvmQuestion&) {
    asked.set_value();
    killed.get_future().wait();
    return Acceleration{.words = "KVM is not used: QEMU was killed"};
  });
  auto waits = std::async(std::launch::async, [&] { return engine.Await(Question(), Soon()); });
  asked.get_future().wait();
  engine.Leave();
  EXPECT_EQ(waits.get().error().code, Code::kUnavailable);
  killed.set_value();
  EXPECT_EQ(engine.Begin(Question()).error().code, Code::kUnavailable);
  CanaryRuns next = Engine();
  EXPECT_EQ(next.Await(Question(), Soon())->accelerator, Accelerator::kKvm);
}

TEST_F(CanaryTest, ADamagedFileIsNone) {
  ASSERT_TRUE(os::MakeDirs(folder_.path() + "/keep", 0700));
  ASSERT_TRUE(WriteFile(folder_.path() + "/keep/kvm", "\xff\xff\xff", 0600));
  CanaryRuns engine = Engine();
  EXPECT_TRUE(engine.Begin(Question()));
  ASSERT_TRUE(engine.Await(Question(), Soon()));
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
