// SPDX-License-Identifier: Apache-2.0
//
// What a container's config.json demands of the OCI runtime.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/runc/container_fixture.h"

namespace gantry::runc {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class ContainerDemands : public RuncContainerTest {};

TEST_F(ContainerDemands, PutsWhatNamesAScopeIntoIt) {
  request_.spec_json = R"({"linux": {"cgroupsPath": "system.slice:docker:c1"}})";
  Script("made");
  ASSERT_TRUE(CreateOn(true));
  EXPECT_THAT(context_.asked.front().argv, Contains("--systemd-cgroup"));
}

TEST_F(ContainerDemands, MakesNoScopeOtherwise) {
  Script("made");
  for (const std::string path : {"", "/a/b", "a:b:c", "system.slice:docker", "/x.slice:a:b"}) {
    request_.spec_json = R"({"linux": {"cgroupsPath": ")" + path + "\"}}";
    const auto made = CreateOn(true);
    ASSERT_TRUE(made) << path;
    EXPECT_THAT(context_.asked.back().argv, Not(Contains("--systemd-cgroup"))) << path;
    EXPECT_TRUE((*made)->Delete());
    container_.process.bound = nullptr;
  }
}

TEST_F(ContainerDemands, MakesNoScopeWhereSystemdDoesNotRun) {
  request_.spec_json = R"({"linux": {"cgroupsPath": "system.slice:docker:c1"}})";
  Script("made");
  ASSERT_TRUE(CreateOn(false));
  EXPECT_THAT(context_.asked.front().argv, Not(Contains("--systemd-cgroup")));
}

TEST_F(ContainerDemands, RefusesAPathWhereAScopeIsAskedFor) {
  request_.spec_json = R"({"linux": {"cgroupsPath": "/kubepods/pod1/c1"}})";
  request_.options_json.insert(1, "\"SystemdCgroup\": true, ");
  Script("made");
  const auto made = Create();
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kInvalidArgument);
  EXPECT_THAT(made.error().message,
              AllOf(HasSubstr("'/kubepods/pod1/c1'"), HasSubstr("'SystemdCgroup'")));
  EXPECT_THAT(context_.asked, IsEmpty());
  EXPECT_FALSE(IsThere(State()));
}

TEST_F(ContainerDemands, LetsTheRuntimeNameAScopeWhereTheSpecDoesNot) {
  request_.options_json.insert(1, "\"SystemdCgroup\": true, ");
  Script("made");
  ASSERT_TRUE(Create());
  EXPECT_THAT(context_.asked.front().argv, Contains("--systemd-cgroup"));
}

TEST_F(ContainerDemands, RefusesToMapMountsWithARuntimeThatLeavesItOut) {
  request_.spec_json = R"({"mounts": [{"destination": "/data", "uidMappings":
      [{"containerID": 0, "hostID": 1000, "size": 1}]}]})";
  Script("[ $VERB = features ] && echo '{\"linux\": {}}'");
  const auto made = Create();
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(made.error().message, HasSubstr("the mount at '/data' is to be id-mapped"));
  ASSERT_EQ(context_.asked.size(), 1U);
  EXPECT_THAT(context_.asked.front().argv, Contains("features"));
}

TEST_F(ContainerDemands, MapsMountsWithARuntimeThatPromisesIt) {
  request_.spec_json = R"({"mounts": [{"destination": "/data", "options": ["rbind", "idmap"]}]})";
  Script(R"([ $VERB = create ] && made
      [ $VERB != features ] || echo '{"linux": {"mountExtensions": {"idmap": {"enabled": true}}}}')");
  const auto made = Create();
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_EQ(context_.asked.size(), 2U);
  EXPECT_THAT(context_.asked.front().argv, Contains("features"));
}

}  // namespace
}  // namespace gantry::runc
