// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/stats/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/gvisor/metrics_reader.h"

namespace gantry::gvisor {
namespace {

using testing::UnorderedElementsAre;

constexpr ContainerMetrics kSome = {.cpu_ns = 7'654'321,
                                    .memory_bytes = 40'000,
                                    .memory_limit_bytes = 64'000,
                                    .processes = 3,
                                    .oom_kills = 1};

TEST(GvisorMetricsV1, HaveTheNumbersThatContainerdReads) {
  const AnyValue any = MetricsV1(kSome);
  EXPECT_EQ(any.type_url, "io.containerd.cgroups.v1.Metrics");
  EXPECT_EQ(NumberAt(any, {3, 1, 1}), 7'654'321U);
  EXPECT_EQ(NumberAt(any, {4, 33, 1}), 64'000U);
  EXPECT_EQ(NumberAt(any, {4, 33, 2}), 40'000U);
  EXPECT_EQ(NumberAt(any, {2, 1}), 3U);
  EXPECT_EQ(NumberAt(any, {2, 2}), UINT64_MAX);
  EXPECT_EQ(NumberAt(any, {9, 3}), 1U);
}

TEST(GvisorMetricsV2, HaveTheNumbersThatContainerdReads) {
  const AnyValue any = MetricsV2(kSome);
  EXPECT_EQ(any.type_url, "io.containerd.cgroups.v2.Metrics");
  EXPECT_EQ(NumberAt(any, {2, 1}), 7'654U);
  EXPECT_EQ(NumberAt(any, {4, 33}), 64'000U);
  EXPECT_EQ(NumberAt(any, {4, 32}), 40'000U);
  EXPECT_EQ(NumberAt(any, {1, 1}), 3U);
  EXPECT_EQ(NumberAt(any, {1, 2}), UINT64_MAX);
  EXPECT_EQ(NumberAt(any, {8, 5}), 1U);
}

// Clients take `CPU.Throttling`, `Blkio`, `Io` and so on as there.
TEST(GvisorMetrics, HaveAllParts) {
  EXPECT_THAT(FieldsAt(MetricsV1({}), {}), UnorderedElementsAre(2, 3, 4, 5, 9));
  EXPECT_THAT(FieldsAt(MetricsV1({}), {3}), UnorderedElementsAre(1, 2));
  EXPECT_THAT(FieldsAt(MetricsV1({}), {4}), UnorderedElementsAre(33, 34, 35, 36));
  EXPECT_THAT(FieldsAt(MetricsV2({}), {}), UnorderedElementsAre(1, 2, 4, 6, 8));
}

// containerd subtracts what is used from the limit: it takes 0 for one, and what is left for
// the largest number there is.
TEST(GvisorMetrics, HaveALimitAlways) {
  EXPECT_EQ(NumberAt(MetricsV1({}), {4, 33, 1}), UINT64_MAX);
  EXPECT_EQ(NumberAt(MetricsV2({}), {4, 33}), UINT64_MAX);
}

}  // namespace
}  // namespace gantry::gvisor
