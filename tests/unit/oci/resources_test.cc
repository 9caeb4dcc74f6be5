// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <gantry/toolkit/oci/resources.h>

namespace gantry::oci {
namespace {

TEST(ParseResources, ReadsWhatAnUpdateSends) {
  const auto resources = ParseResources(R"({
    "memory": {"limit": 67108864, "swap": -1},
    "cpu": {"shares": 512, "quota": -1, "period": 100000, "cpus": "0-1", "idle": 1},
    "pids": {"limit": 100}, "blockIO": {"weight": 500},
    "hugepageLimits": [{"pageSize": "2MB", "limit": 4194304}],
    "unified": {"memory.high": "max"},
    "devices": [{"allow": false, "access": "rwm"}]})");
  ASSERT_TRUE(resources.has_value()) << resources.error().message;
  EXPECT_EQ(resources->memory.limit_bytes, 67108864);
  EXPECT_EQ(resources->memory.swap_bytes, -1);
  EXPECT_FALSE(resources->memory.reservation_bytes.has_value());
  EXPECT_EQ(resources->cpu.shares, 512U);
  EXPECT_EQ(resources->cpu.quota_us, -1);
  EXPECT_EQ(resources->cpu.period_us, 100000U);
  EXPECT_EQ(resources->cpu.cpus, "0-1");
  EXPECT_EQ(resources->cpu.idle, 1);
  EXPECT_EQ(resources->pids_limit, 100);
  EXPECT_EQ(resources->blkio_weight, 500);
  ASSERT_EQ(resources->hugetlb_bytes.size(), 1U);
  EXPECT_EQ(resources->hugetlb_bytes[0].first, "2MB");
  EXPECT_EQ(resources->unified.at("memory.high"), "max");
}

TEST(ParseResources, ReadsThatALimitIsCheckedFirst) {
  EXPECT_TRUE(
      ParseResources(R"({"memory": {"checkBeforeUpdate": true}})")->memory.check_before_update);
  EXPECT_FALSE(ParseResources(R"({"memory": {"limit": 5}})")->memory.check_before_update);
}

TEST(ParseResources, LeavesOutWhatIsAbsentOrNull) {
  const auto resources = ParseResources(R"({"memory": null, "pids": {}})");
  ASSERT_TRUE(resources.has_value());
  EXPECT_FALSE(resources->memory.limit_bytes.has_value());
  EXPECT_FALSE(resources->pids_limit.has_value());
}

/// A kernel of cgroup v1 empties the set of a cgroup that is told blanks, and then takes no
/// process.
TEST(ParseResources, TakesBlankListsOfProcessorsForNone) {
  const auto resources = ParseResources(R"({"cpu": {"cpus": " ", "mems": " \t\n"}})");
  ASSERT_TRUE(resources.has_value()) << resources.error().message;
  EXPECT_EQ(resources->cpu.cpus, "");
  EXPECT_EQ(resources->cpu.mems, "");
  EXPECT_EQ(ParseResources(R"({"cpu": {"cpus": " 0-1"}})")->cpu.cpus, " 0-1");
}

Result<std::vector<cgroup::DeviceRule>> DeviceRules(const std::string& list) {
  GANTRY_TRY(const Json object, Json::Parse(R"({"devices": )" + list + "}", "resources"));
  return ReadDeviceRules(object);
}

TEST(ReadDeviceRules, ReadsThemInTheirOrder) {
  const auto rules = DeviceRules(
      R"([{"allow": false, "access": "rwm"},
          {"allow": true, "type": "c", "major": 10, "minor": 200, "access": "wr"},
          {"allow": true, "type": "b", "major": 8, "minor": -1, "access": null}])");
  ASSERT_TRUE(rules) << rules.error().message;
  ASSERT_EQ(rules->size(), 3U);
  EXPECT_EQ(rules->at(0), cgroup::DeviceRule());
  EXPECT_EQ(
      rules->at(1),
      (cgroup::DeviceRule{.allow = true, .type = 'c', .major = 10, .minor = 200, .mknod = false}));
  EXPECT_EQ(rules->at(2), (cgroup::DeviceRule{.allow = true, .type = 'b', .major = 8}));
}

TEST(ReadDeviceRules, FindsNoneWhereThereAreNone) {
  EXPECT_TRUE(DeviceRules("null")->empty());
  EXPECT_TRUE(DeviceRules("[]")->empty());
}

TEST(ReadDeviceRules, RefusesWhatIsNone) {
  for (const char* list :
       {"{}", "[5]", R"([{"allow": 1}])", R"([{"type": "p"}])", R"([{"type": ""}])",
        R"([{"major": -2}])", R"([{"major": 4096}])", R"([{"minor": 1048576}])",
        R"([{"minor": 1.5}])", R"([{"access": "rx"}])"}) {
    const auto rules = DeviceRules(list);
    ASSERT_FALSE(rules) << list;
    EXPECT_EQ(rules.error().code, Code::kInvalidArgument) << list;
    EXPECT_THAT(rules.error().message, testing::HasSubstr("/devices")) << list;
  }
}

class ParseResourcesBad : public testing::TestWithParam<const char*> {};

TEST_P(ParseResourcesBad, IsRefused) {
  const auto resources = ParseResources(GetParam());
  ASSERT_FALSE(resources.has_value());
  EXPECT_EQ(resources.error().code, Code::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(
    All, ParseResourcesBad,
    testing::Values("", "null", "[]", "{", R"({"memory": []})", R"({"memory": {"limit": "1G"}})",
                    R"({"cpu": {"shares": -1}})", R"({"pids": 5})",
                    R"({"blockIO": {"weight": 70000}})",
                    R"({"hugepageLimits": [{"pageSize": "../x", "limit": 1}]})",
                    R"({"unified": {"../memory.high": "1"}})", R"({"unified": {"": "1"}})",
                    R"({"unified": {"memory.high": 1}})"));

}  // namespace
}  // namespace gantry::oci
