// SPDX-License-Identifier: Apache-2.0
//
// What systemd is told of a scope on v1.
#include "core/cgroup/scope_v1.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::cgroup::v1 {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();
constexpr char kGroups[] =
    "Character devices:\n  1 mem\n  5 /dev/tty\n136 pts\n\nBlock devices:\n  1 ramdisk\n";

os::UnitProperty Number(const char* name, uint64_t number) {
  return {.name = name, .value = number};
}

TEST(ScopeOfV1, HasTheSpecsNumbers) {
  CgroupResources resources;
  resources.memory.limit_bytes = 4096;
  resources.cpu.shares = 512;
  resources.cpu.quota_us = 50'000;
  resources.cpu.period_us = 200'000;
  resources.blkio_weight = 500;
  resources.pids_limit = 7;
  EXPECT_THAT(ScopeProperties(resources),
              ElementsAre(Number("MemoryLimit", 4096), Number("CPUShares", 512),
                          Number("CPUQuotaPerSecUSec", 250'000), Number("BlockIOWeight", 500),
                          Number("TasksMax", 7)));
}

TEST(ScopeOfV1, HasNoLimitWhereTheSpecHasMinusOne) {
  CgroupResources resources;
  resources.memory.limit_bytes = -1;
  resources.cpu.quota_us = -1;
  resources.pids_limit = -1;
  EXPECT_THAT(ScopeProperties(resources),
              ElementsAre(Number("MemoryLimit", kNone), Number("CPUQuotaPerSecUSec", kNone),
                          Number("TasksMax", kNone)));
}

TEST(ScopeOfV1, HasNothingOfWhatIsNotGiven) {
  EXPECT_THAT(ScopeProperties({}), IsEmpty());
  CgroupResources resources;
  resources.cpu.quota_us = 1;
  EXPECT_THAT(ScopeProperties(resources), ElementsAre(Number("CPUQuotaPerSecUSec", 10'000)))
      << "whole percents, of the kernel's period";
}

TEST(ScopeOfV1, AllowsTheSpecsDevicesAndThoseOfEachContainer) {
  const auto properties = DeviceProperties({{.allow = false},
                                            {.allow = true, .type = 'b', .major = 8, .minor = 0},
                                            {.allow = true, .type = 'b', .major = 1},
                                            {.allow = true, .type = 'b', .major = 9}},
                                           kGroups);
  EXPECT_THAT(properties,
              ElementsAre(os::UnitProperty{.name = "DevicePolicy", .value = std::string("strict")},
                          os::UnitProperty{.name = "DeviceAllow",
                                           .value = os::DeviceList{{"/dev/block/8:0", "rwm"},
                                                                   {"block-ramdisk", "rwm"},
                                                                   {"block-*", "m"},
                                                                   {"char-*", "m"},
                                                                   {"/dev/char/1:3", "rwm"},
                                                                   {"/dev/char/1:5", "rwm"},
                                                                   {"/dev/char/1:7", "rwm"},
                                                                   {"/dev/char/1:8", "rwm"},
                                                                   {"/dev/char/1:9", "rwm"},
                                                                   {"/dev/char/5:0", "rwm"},
                                                                   {"/dev/char/5:2", "rwm"},
                                                                   {"char-pts", "rwm"}}}));
}

TEST(ScopeOfV1, LimitsNothingOfAPrivilegedContainer) {
  EXPECT_THAT(DeviceProperties({{.allow = true}}, kGroups),
              ElementsAre(os::UnitProperty{.name = "DevicePolicy", .value = std::string("auto")}));
}

}  // namespace
}  // namespace gantry::cgroup::v1
