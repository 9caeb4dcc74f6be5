// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/stats/cpu_ledger.h"

#include <gtest/gtest.h>

namespace gantry::gvisor {
namespace {

constexpr bool kAlone = true;

CpuSample Sample(uint64_t host, uint64_t own, uint64_t all) {
  return {.host_ns = host, .sentry = {.own_ns = own, .all_ns = all}};
}

uint64_t After(CpuLedger& ledger, const CpuSample& sample, bool is_alone = false) {
  ledger.Add(sample, is_alone);
  return ledger.total_ns();
}

TEST(CpuLedger, DividesTheHostsTimeAsTheSentryCounts) {
  CpuLedger busy;
  CpuLedger idle;
  EXPECT_EQ(After(busy, Sample(8'000'000, 3'000'000, 4'000'000)), 6'000'000U);
  EXPECT_EQ(After(idle, Sample(8'000'000, 1'000'000, 4'000'000)), 2'000'000U);
  EXPECT_EQ(After(busy, Sample(10'000'000, 5'000'000, 6'000'000)), 8'000'000U) << "all of it";
  EXPECT_EQ(After(idle, Sample(10'000'000, 1'000'000, 6'000'000)), 2'000'000U) << "nothing";
}

TEST(CpuLedger, DoesNotRunBackwardsWhenItsShareOfAllFalls) {
  CpuLedger ledger;
  EXPECT_EQ(After(ledger, Sample(5'000'000, 1'000'000, 1'000'000)), 5'000'000U);
  // 1 of 100 of what has been used so far would be 1,000,000.
  EXPECT_EQ(After(ledger, Sample(100'000'000, 1'000'000, 100'000'000)), 5'000'000U);
}

TEST(CpuLedger, DoesNotRunBackwardsWhenTheSentrysNumbersDo) {
  CpuLedger ledger;
  EXPECT_EQ(After(ledger, Sample(5'000'000, 4'000'000, 4'000'000)), 5'000'000U);
  EXPECT_EQ(After(ledger, Sample(6'000'000, 1'000'000, 1'000'000)), 5'000'000U);
  EXPECT_EQ(After(ledger, Sample(8'000'000, 2'000'000, 2'000'000)), 7'000'000U) << "from there on";
}

TEST(CpuLedger, DoesNotRunBackwardsWhenTheHostsNumberDoes) {
  CpuLedger ledger;
  EXPECT_EQ(After(ledger, Sample(5'000'000, 4'000'000, 4'000'000)), 5'000'000U);
  EXPECT_EQ(After(ledger, Sample(1'000'000, 5'000'000, 5'000'000)), 5'000'000U);
  EXPECT_EQ(After(ledger, Sample(2'000'000, 6'000'000, 6'000'000)), 6'000'000U);
}

TEST(CpuLedger, GivesNobodyWhatIsUsedWhileNobodyRuns) {
  CpuLedger ledger;
  EXPECT_EQ(After(ledger, Sample(5'000'000, 2'000'000, 2'000'000)), 5'000'000U);
  EXPECT_EQ(After(ledger, Sample(9'000'000, 2'000'000, 2'000'000)), 5'000'000U);
  EXPECT_EQ(After(ledger, Sample(10'000'000, 3'000'000, 3'000'000)), 6'000'000U);
}

TEST(CpuLedger, GivesAllToOneThatIsAlone) {
  CpuLedger ledger;
  EXPECT_EQ(After(ledger, Sample(5'000'000, 0, 0), kAlone), 5'000'000U);
  EXPECT_EQ(After(ledger, Sample(9'000'000, 2'000'000, 2'000'000), kAlone), 9'000'000U);
}

TEST(CpuLedger, IsNever0) {
  CpuLedger ledger;
  EXPECT_EQ(ledger.total_ns(), 1000U);
  EXPECT_EQ(After(ledger, Sample(5'000'000, 0, 4'000'000)), 1000U);
}

TEST(CpuLedger, NeverGivesMoreThanTheHostHasGiven) {
  CpuLedger ledger;
  // More than all there is, and more than can be counted.
  EXPECT_EQ(After(ledger, Sample(5'000'000, 8'000'000, 2'000'000)), 5'000'000U);
  EXPECT_LE(After(ledger, Sample(6'000'000, UINT64_MAX, UINT64_MAX)), 6'000'000U);
  EXPECT_LE(After(ledger, Sample(7'000'000, UINT64_MAX, 0)), 7'000'000U);
}

TEST(CpuLedger, TakesTheSentrysWordWithoutACgroup) {
  CpuLedger ledger;
  const auto said = [](uint64_t own) {
    return CpuSample{.host_ns = {}, .sentry = {.own_ns = own, .all_ns = 9'000'000}};
  };
  EXPECT_EQ(After(ledger, said(3'000'000)), 3'000'000U);
  EXPECT_EQ(After(ledger, said(2'000'000)), 3'000'000U);
  EXPECT_EQ(After(ledger, said(2'500'000), kAlone), 3'500'000U);
}

TEST(CpuLedger, GoesOnWhereItWasAfterARestart) {
  CpuLedger before;
  before.Add(Sample(8'000'000, 3'000'000, 4'000'000), false);
  auto after = CpuLedger::FromText(before.ToText());
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(after->total_ns(), 6'000'000U);
  EXPECT_EQ(After(*after, Sample(10'000'000, 4'000'000, 6'000'000)), 7'000'000U);
}

TEST(CpuLedger, GoesOnAfterTheLargestNumbers) {
  CpuLedger before;
  for (int i = 0; i < 3; ++i) {
    before.Add({.host_ns = {}, .sentry = {.own_ns = UINT64_MAX, .all_ns = UINT64_MAX}}, false);
    before.Add({.host_ns = {}, .sentry = {}}, false);
  }
  const auto after = CpuLedger::FromText(before.ToText());
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(after->total_ns(), before.total_ns());
}

TEST(CpuLedger, ReadsNothingElse) {
  for (const char* text : {"", "1", "1 2 3", "1 2 3 4 5", "1 2 3 x", "1 2 3 ", " 1 2 3 4",
                           "1 2 3 -4", "1 2 3 99999999999999999999"}) {
    const auto read = CpuLedger::FromText(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, Code::kDataLoss);
  }
}

}  // namespace
}  // namespace gantry::gvisor
