// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/pod/set_up.h"

#include <cstdlib>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

#include "plugins/vmm/pod/cgroup_limits.h"

namespace gantry::vmm {
namespace {

using testing::HasSubstr;

TEST(PodSetUp, IsThatOfItsFirstContainerOrOfThePod) {
  oci::Spec spec;
  spec.hostname = "web-0";
  spec.linux_spec.sysctl = {{"net.core.somaxconn", "99"}};
  const protocol::SetUp set_up = SetUpOf(spec);
  EXPECT_EQ(set_up.hostname, "web-0");
  ASSERT_EQ(set_up.sysctls.size(), 1U);
  EXPECT_EQ(set_up.sysctls[0].name, "net.core.somaxconn");
  EXPECT_EQ(set_up.sysctls[0].value, "99");
  EXPECT_NE(SetUpOf(PodConfig()).hostname, "") << "the node's";
}

TEST(PodSetUp, RefusesByNameWhatAGuestCannotHave) {
  PodConfig config;
  EXPECT_TRUE(CheckPod(config));
  config.network = NamespaceMode::kNode;
  EXPECT_THAT(CheckPod(config).error().message, HasSubstr("hostNetwork"));
  config.network = NamespaceMode::kPod;
  config.user = NamespaceMode::kPod;
  EXPECT_THAT(CheckPod(config).error().message, HasSubstr("hostUsers"));
}

TEST(CgroupLimits, OfAContainerAreLiftedWhereTheMachineIs) {
  char name[] = "/tmp/gantry-limits-XXXXXX";
  const std::string folder = ::mkdtemp(name);
  ASSERT_TRUE(WriteFile(folder + "/memory.max", "1048576", 0600));
  ASSERT_TRUE(WriteFile(folder + "/pids.max", "10", 0600));
  ASSERT_TRUE(WriteFile(folder + "/cpu.max", "50000 100000", 0600));
  ASSERT_TRUE(LiftContainerLimits({folder, "/nowhere"}));
  EXPECT_THAT(ReadFile(folder + "/memory.max", 64).value(), testing::StartsWith("max"));
  EXPECT_THAT(ReadFile(folder + "/pids.max", 64).value(), testing::StartsWith("max"));
  EXPECT_EQ(ReadFile(folder + "/cpu.max", 64).value(), "50000 100000");
  EXPECT_FALSE(Exists(folder + "/memory.high"));
  EXPECT_TRUE(RemoveTree(folder));
}

}  // namespace
}  // namespace gantry::vmm
