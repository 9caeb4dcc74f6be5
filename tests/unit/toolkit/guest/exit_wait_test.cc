// SPDX-License-Identifier: Apache-2.0
//
// Answers that come while the wait for them is being set up.
#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <semaphore>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/testing/sandbox_context.h>
#include <gantry/toolkit/guest/exit_wait.h>

namespace gantry {
namespace {

using testing::ElementsAre;
using testing::Eq;

/// Whatever is watched is readable at once, and again with each further watch.
class EagerContext : public FakeSandboxContext {
 public:
  Result<std::unique_ptr<Watch>> WatchReadable(int, std::function<void()> ready) override {
    ready_.push_back(std::move(ready));
    Fire();
    return std::make_unique<Watched>();
  }

  void Fire() {
    for (const auto& ready : ready_) {
      ready();
    }
  }

 private:
  struct Watched : Watch {};

  std::vector<std::function<void()>> ready_;
};

/// One that has its answer, or has heard that there will be none.
class Answered : public ExitQuestion {
 public:
  explicit Answered(std::optional<uint32_t> answer) : answer_(answer) {}

  int fd() const override { return 0; }

  std::optional<uint32_t> Peek(Deadline) override { return answer_; }

 private:
  const std::optional<uint32_t> answer_;
};

ExitWait::Questions Asked(const std::vector<std::optional<uint32_t>>& answers) {
  ExitWait::Questions questions;
  for (const auto& answer : answers) {
    questions.push_back(std::make_unique<Answered>(answer));
  }
  return questions;
}

/// What is told of questions with these answers.
std::vector<std::optional<uint32_t>> ToldOf(const std::vector<std::optional<uint32_t>>& answers) {
  EagerContext context;
  std::vector<std::optional<uint32_t>> told;
  const auto wait = ExitWait::Begin(
      context, Asked(answers), [&](std::optional<uint32_t> status) { told.push_back(status); });
  EXPECT_TRUE(wait);
  // Each time one of them ends its watch, the others are still to be looked at.
  for (size_t i = 0; i < answers.size(); ++i) {
    context.Fire();
  }
  return told;
}

TEST(ExitWait, TellsOnceHoweverManyAnswersAreThereAlready) {
  EXPECT_THAT(ToldOf({3, 3}), ElementsAre(3));
}

TEST(ExitWait, TakesTheAnswerOfOneWhereAnotherHasNone) {
  EXPECT_THAT(ToldOf({std::nullopt, 3}), ElementsAre(3));
}

TEST(ExitWait, TellsThatThereIsNoneWhenTheLastHasNone) {
  EXPECT_THAT(ToldOf({std::nullopt, std::nullopt}), ElementsAre(Eq(std::nullopt)));
}

TEST(ExitWait, IsSettledWhenWhoeverTellsHasTold) {
  EagerContext context;
  std::binary_semaphore telling{0};
  std::binary_semaphore go_on{0};
  std::atomic<bool> told = false;
  const auto wait = ExitWait::Begin(context, Asked({3}), [&](std::optional<uint32_t>) {
    telling.release();
    go_on.acquire();
    told = true;
  });
  ASSERT_TRUE(wait);
  std::jthread teller([&] { context.Fire(); });
  telling.acquire();
  auto settled = std::async(std::launch::async, [&] {
    (*wait)->Settle(std::chrono::steady_clock::now() + std::chrono::seconds(10));
    return told.load();
  });
  // It has nothing to wait for but the other thread.
  EXPECT_EQ(settled.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  go_on.release();
  EXPECT_TRUE(settled.get());
}

}  // namespace
}  // namespace gantry
