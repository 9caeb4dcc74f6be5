// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/oci/exec.h>

namespace gantry::oci {
namespace {

constexpr char kBare[] = R"({"args":["sh"],"cwd":"/"})";

Spec ContainerOf(const std::string& process_part) {
  return ParseSpec(R"({"ociVersion":"1.1.0","root":{"path":"rootfs"},"process":{"args":["a"],)"
                   R"("cwd":"/")" +
                       process_part + "}}",
                   "config.json")
      .value();
}

const char kConfined[] =
    R"(,"user":{"uid":7},"env":["A=b"],"capabilities":{"bounding":["CAP_KILL"]},
       "noNewPrivileges":true,"apparmorProfile":"p","selinuxLabel":"l","oomScoreAdj":5,
       "rlimits":[{"type":"RLIMIT_CORE","soft":1,"hard":2}])";

TEST(ParseExec, HasWhatConfinesItsContainer) {
  const auto exec = ParseExec(kBare, ContainerOf(kConfined));
  ASSERT_TRUE(exec) << exec.error().message;
  ASSERT_TRUE(exec->capabilities);
  EXPECT_EQ(exec->capabilities->bounding, 1U << 5) << "CAP_KILL";
  EXPECT_TRUE(exec->no_new_privileges);
  EXPECT_EQ(exec->apparmor_profile, "p");
  EXPECT_EQ(exec->selinux_label, "l");
  EXPECT_EQ(exec->oom_score_adj, 5);
  ASSERT_EQ(exec->rlimits.size(), 1U);
  EXPECT_EQ(exec->rlimits[0].resource, RLIMIT_CORE);
  EXPECT_EQ(exec->user.uid, 0U) << "its own";
  EXPECT_TRUE(exec->env.empty()) << "its own";
}

TEST(ParseExec, HasWhatItSaysItself) {
  const auto exec = ParseExec(
      R"({"args":["sh"],"cwd":"/","capabilities":{"bounding":["CAP_CHOWN"]},"oomScoreAdj":0,
          "apparmorProfile":"q","noNewPrivileges":false})",
      ContainerOf(kConfined));
  ASSERT_TRUE(exec) << exec.error().message;
  EXPECT_EQ(exec->capabilities->bounding, 1U) << "CAP_CHOWN";
  EXPECT_EQ(exec->oom_score_adj, 0);
  EXPECT_EQ(exec->apparmor_profile, "q");
  EXPECT_TRUE(exec->no_new_privileges) << "not taken back";
}

TEST(ParseExec, HasNoCapabilityThatNobodyNamed) {
  const auto exec = ParseExec(kBare, ContainerOf(""));
  ASSERT_TRUE(exec) << exec.error().message;
  ASSERT_TRUE(exec->capabilities) << "absent would be the node's root";
  EXPECT_EQ(exec->capabilities->bounding, 0U);
  EXPECT_EQ(ParseExec("{}", ContainerOf("")).error().code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace gantry::oci
