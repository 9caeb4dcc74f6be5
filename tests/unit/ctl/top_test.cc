// SPDX-License-Identifier: Apache-2.0
#include "core/ctl/top.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::ctl {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

constexpr uint64_t kCpuSecond = 1'000'000'000;

v1::Instance& AddTo(v1::ListResponse& list, const std::string& id, const std::string& sandbox,
                    const std::string& kind = "container") {
  v1::Instance& one = *list.add_instances();
  one.set_namespace_("k8s.io");
  one.set_id(id);
  one.set_sandbox_id(sandbox);
  one.set_kind(kind);
  one.set_backend("runc");
  one.set_state("running");
  one.set_memory_bytes(1024);
  one.set_pids(2);
  return one;
}

TEST(Top, AddsUpWhatIsInAPod) {
  v1::ListResponse list;
  AddTo(list, "pod", "").set_cpu_ns(kCpuSecond);
  AddTo(list, "c", "pod").set_cpu_ns(2 * kCpuSecond);
  const auto all = UseSamples().Next(list, seconds(0));
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].id, "pod");
  EXPECT_EQ(all[0].containers, 2U);
  EXPECT_EQ(all[0].cpu_ns, 3 * kCpuSecond);
  EXPECT_EQ(all[0].memory_bytes, 2048U);
  EXPECT_EQ(all[0].pids, 4U);
  EXPECT_LT(all[0].cpu_percent, 0);
}

TEST(Top, CountsAPodThatHasACgroupAroundAllOnce) {
  v1::ListResponse list;
  AddTo(list, "c", "pod").set_cpu_ns(2 * kCpuSecond);
  AddTo(list, "pod", "", "sandbox").set_cpu_ns(3 * kCpuSecond);
  const auto all = UseSamples().Next(list, seconds(0));
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].containers, 1U);
  EXPECT_EQ(all[0].cpu_ns, 3 * kCpuSecond);
  EXPECT_EQ(all[0].memory_bytes, 1024U);
}

TEST(Top, TellsWhatWasUsedSinceTheLookBefore) {
  v1::ListResponse list;
  AddTo(list, "idle", "").set_cpu_ns(9 * kCpuSecond);
  AddTo(list, "busy", "").set_cpu_ns(kCpuSecond);
  UseSamples samples;
  samples.Next(list, seconds(0));
  list.mutable_instances(1)->set_cpu_ns(4 * kCpuSecond);
  AddTo(list, "new", "").set_cpu_ns(kCpuSecond);
  const auto all = samples.Next(list, seconds(2));
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].id, "busy");
  EXPECT_DOUBLE_EQ(all[0].cpu_percent, 150);
  EXPECT_EQ(all[1].id, "idle");
  EXPECT_DOUBLE_EQ(all[1].cpu_percent, 0);
  EXPECT_EQ(all[2].id, "new");
  EXPECT_LT(all[2].cpu_percent, 0) << "of which no look before is known";
  EXPECT_THAT(UseTable(all), HasSubstr("150.0%"));
  EXPECT_THAT(UseJson(all), HasSubstr("\"id\":\"busy\",\"backend\":\"runc\",\"state\":\"running\","
                                      "\"containers\":1,\"cpu_percent\":150.00"));
  EXPECT_THAT(UseJson(all), HasSubstr("\"cpu_percent\":null"));
}

TEST(Top, TakesACgroupThatWasMadeAnewForAnother) {
  v1::ListResponse list;
  AddTo(list, "c", "").set_cpu_ns(9 * kCpuSecond);
  UseSamples samples;
  samples.Next(list, seconds(0));
  list.mutable_instances(0)->set_cpu_ns(kCpuSecond);
  EXPECT_LT(samples.Next(list, seconds(2))[0].cpu_percent, 0);
}

}  // namespace
}  // namespace gantry::ctl
