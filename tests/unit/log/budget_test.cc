// SPDX-License-Identifier: Apache-2.0
#include "core/log/budget.h"

#include <memory_resource>
#include <string>

#include <gtest/gtest.h>

namespace gantry::log {
namespace {

constexpr const char* kFile = "a.cc";

class BudgetTest : public testing::Test {
 protected:
  bool Admit(uint32_t line, const std::string& subject, bool is_error = false) {
    last_ = budget_.Admit(kFile, line, is_error, subject, now_);
    return last_.admitted;
  }

  /// How many of `count` lines are admitted.
  uint32_t Log(uint32_t count, uint32_t line, const std::string& subject, bool is_error = false) {
    uint32_t admitted = 0;
    for (uint32_t i = 0; i < count; ++i) {
      admitted += Admit(line, subject, is_error) ? 1 : 0;
    }
    return admitted;
  }

  Budget budget_;
  Budget::Answer last_;
  Budget::Clock::time_point now_{std::chrono::hours(1)};
};

TEST_F(BudgetTest, OfOneSiteAndSubjectIsItsOwn) {
  EXPECT_EQ(Log(1'000'000, 1, "a"), Budget::kBurst);
  EXPECT_TRUE(Admit(1, "b")) << "another subject at the same site";
  EXPECT_TRUE(Admit(2, "a")) << "the same one at another site";
  EXPECT_EQ(Log(1000, 3, "a", true), Budget::kErrorBurst);
}

TEST_F(BudgetTest, SaysWhatWasHeldBack) {
  Log(Budget::kBurst + 7, 1, "a");
  now_ += Budget::kWindow;
  EXPECT_FALSE(Admit(1, "a")) << "the window is not over";
  now_ += std::chrono::milliseconds(1);
  ASSERT_TRUE(Admit(1, "a"));
  EXPECT_EQ(last_.suppressed, 8U);
  ASSERT_TRUE(Admit(1, "a"));
  EXPECT_EQ(last_.suppressed, 0U);
}

TEST_F(BudgetTest, OfOneSubjectHoldsForAllSites) {
  uint32_t admitted = 0;
  for (uint32_t line = 0; line < 1000; ++line) {
    admitted += Log(100, line, "a");
  }
  EXPECT_EQ(admitted, Budget::kSubjectBurst);
  EXPECT_TRUE(Admit(1, "b"));
}

TEST_F(BudgetTest, OfAllLeavesEachOneSomething) {
  uint32_t admitted = 0;
  for (int i = 0; i < 100; ++i) {
    for (uint32_t line = 0; line < 30; ++line) {
      admitted += Log(20, line, "flood" + std::to_string(i));
    }
  }
  EXPECT_LE(admitted, Budget::kGlobalBurst + 100 * Budget::kFloor);
  EXPECT_GE(admitted, Budget::kGlobalBurst);
  EXPECT_EQ(Log(1000, 7, "quiet"), Budget::kFloor) << "the flood is not its fault";
  EXPECT_FALSE(Admit(1, "")) << "what is about nobody";
  now_ += 2 * Budget::kWindow;
  EXPECT_TRUE(Admit(1, ""));
}

TEST_F(BudgetTest, RemembersThoseThatLoggedLast) {
  Log(Budget::kBurst, 1, "a");
  for (size_t i = 0; i < 2 * Budget::kRemembered; ++i) {
    // Each brings two entries, and the first ones are looked at in between.
    Admit(1, "other" + std::to_string(i));
    EXPECT_FALSE(Admit(1, "a"));
  }
}

/// Counts what is asked of the heap.
class CountingMemory : public std::pmr::memory_resource {
 public:
  int pieces = 0;

 private:
  void* do_allocate(size_t bytes, size_t alignment) override {
    ++pieces;
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  }

  void do_deallocate(void* piece, size_t bytes, size_t alignment) override {
    --pieces;
    std::pmr::new_delete_resource()->deallocate(piece, bytes, alignment);
  }

  [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override {
    return this == &other;
  }
};

TEST(BudgetMemory, IsFewPiecesSoThatItKeepsFewPagesOfTheHeap) {
  CountingMemory memory;
  {
    Budget budget(&memory);
    for (size_t i = 0; i < Budget::kRemembered; ++i) {
      budget.Admit(kFile, 1, false, "subject" + std::to_string(i), Budget::Clock::time_point{});
    }
    EXPECT_LE(memory.pieces, static_cast<int>(Budget::kRemembered / 32));
  }
  EXPECT_EQ(memory.pieces, 0);
}

}  // namespace
}  // namespace gantry::log
