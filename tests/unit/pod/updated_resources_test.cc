// SPDX-License-Identifier: Apache-2.0
#include "core/pod/updated_resources.h"

#include <gtest/gtest.h>

#include <gantry/pod_config.h>

namespace gantry::task {
namespace {

TEST(UpdatedResources, AreWhatCriSays) {
  // As containerd 2.3.4 writes them.
  const auto bytes = ReadUpdatedResources(
      R"({"Overhead":{"cpu_period":100000,"cpu_quota":5000},)"
      R"("Resources":{"cpu_period":100000,"cpu_quota":50000,"cpu_shares":512,)"
      R"("memory_limit_in_bytes":67108864,"oom_score_adj":3,"cpuset_cpus":"0-1",)"
      R"("hugepage_limits":[{"page_size":"2MB","limit":4194304}],)"
      R"("unified":{"memory.high":"50331648"},"memory_swap_limit_in_bytes":134217728}})");
  ASSERT_TRUE(bytes) << bytes.error().message;
  const auto resources = ParsePodResources(*bytes);
  ASSERT_TRUE(resources) << resources.error().message;
  EXPECT_EQ(resources->cpu_quota, 50000);
  EXPECT_EQ(resources->cpu_period, 100000U);
  EXPECT_EQ(resources->cpu_shares, 512U);
  EXPECT_EQ(resources->memory_limit, 67108864);
  EXPECT_EQ(resources->memory_swap_limit, 134217728);
  EXPECT_EQ(resources->cpuset_cpus, "0-1");
  EXPECT_EQ(resources->unified.at("memory.high"), "50331648");
}

TEST(UpdatedResources, MayBeNone) {
  EXPECT_EQ(*ReadUpdatedResources("{}"), "");
  EXPECT_EQ(*ReadUpdatedResources(R"({"Overhead":null,"Resources":null})"), "");
}

TEST(UpdatedResources, ThatAreNoneAreRefused) {
  for (const char* text :
       {"", "[]", "7", "{\"Resources\":7}", "{\"Resources\":{\"cpu_quota\":\"x\"}}",
        "{\"Resources\":{\"hugepage_limits\":{}}}"}) {
    const auto bytes = ReadUpdatedResources(text);
    ASSERT_FALSE(bytes) << text;
    EXPECT_EQ(bytes.error().code, Code::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace gantry::task
