// SPDX-License-Identifier: Apache-2.0
#include "plugins/runc/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/runc/backend.h"
#include "tests/unit/runc/test_files.h"

namespace gantry::runc {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Result<Options> Parse(const std::string& json) { return ParseOptions(json, Options(), nullptr); }

TEST(RuncOptions, TakesTheKeysOfTheRuncShim) {
  const auto options = Parse(R"({"BinaryName": "/x/runc", "Root": "/r", "NoPivotRoot": true,
      "NoNewKeyring": true, "SystemdCgroup": true, "IoUid": 5, "IoGid": 6, "CriuPath": "/c/criu",
      "CriuImagePath": "/i", "CriuWorkPath": "/w", "ShimCgroup": "/s", "TimeoutMs": 7})");
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->binary_name, "/x/runc");
  EXPECT_EQ(options->root, "/r");
  EXPECT_TRUE(options->no_pivot_root && options->no_new_keyring && options->systemd_cgroup);
  EXPECT_EQ(options->io_uid, 5U);
  EXPECT_EQ(options->io_gid, 6U);
  EXPECT_EQ(options->criu_image_path, "/i");
  EXPECT_EQ(options->timeout, std::chrono::milliseconds(7));
}

TEST(RuncOptions, KeepsTheBaseWhereNothingIsSet) {
  Options base;
  base.root = "/base";
  EXPECT_EQ(ParseOptions("", base, nullptr)->root, "/base");
  EXPECT_EQ(ParseOptions("null", base, nullptr)->root, "/base");
  EXPECT_EQ(ParseOptions(R"({"Root": ""})", base, nullptr)->root, "/base");
}

class BadRuncOption : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(BadRuncOption, IsRefusedByName) {
  const auto options = Parse(GetParam().first);
  ASSERT_FALSE(options);
  EXPECT_EQ(options.error().code, Code::kInvalidArgument);
  EXPECT_THAT(options.error().message, HasSubstr(GetParam().second));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadRuncOption,
    testing::Values(std::pair("[]", "no JSON object"), std::pair("{", "no JSON object"),
                    std::pair(R"({"Colour": 1})", "'Colour'"),
                    std::pair(R"({"NoPivotRoot": "yes"})", "'NoPivotRoot': must be true or false"),
                    std::pair(R"({"BinaryName": 5})", "'BinaryName': must be a string"),
                    std::pair(R"({"BinaryName": "a/b"})", "'a/b' is neither"),
                    std::pair(R"({"Root": "relative"})", "'relative' is no absolute path"),
                    std::pair(R"({"IoUid": -1})", "'IoUid': -1 is not from 0 to 4294967295"),
                    std::pair(R"({"IoGid": 1.5})", "'IoGid': must be a whole number"),
                    std::pair(R"({"TimeoutMs": 0})",
                              "'TimeoutMs': 0 is not from 1 to 4294967295")));

TEST(RuncOptions, CollectsUnknownKeysOfRequests) {
  std::vector<std::string> unknown;
  const auto options =
      ParseOptions(R"({"Colour": 1, "TypeUrl": "x", "TaskApiVersion": 3})", Options(), &unknown);
  ASSERT_TRUE(options);
  EXPECT_THAT(unknown, ElementsAre("Colour", "TypeUrl"));
}

TEST(RuncOptions, BackendChecksTheConfiguration) {
  auto backend = MakeBackend("{}");
  ASSERT_TRUE(backend);
  EXPECT_TRUE((*backend)->CheckOptions(R"({"SystemdCgroup": false})"));
  EXPECT_EQ((*backend)->CheckOptions(R"({"Systemd": false})").error().code, Code::kInvalidArgument);
  EXPECT_FALSE(MakeBackend(R"({"x": 1})"));
}

TEST(FindRuntime, PrefersCrunThenTakesRunc) {
  const TempDir dir;
  Options options;
  options.path = "relative:" + dir.path();
  Write(dir / "runc", "", 0755);
  EXPECT_EQ(FindRuntime(options, {}).value_or(""), dir / "runc");
  Write(dir / "crun", "", 0755);
  EXPECT_EQ(FindRuntime(options, {}).value_or(""), dir / "crun");
  options.binary_name = "runc";
  EXPECT_EQ(FindRuntime(options, {}).value_or(""), dir / "runc");
}

TEST(FindRuntime, TakesTheFirstThatTheNodesCgroupsAllow) {
  const TempDir dir;
  const cgroup::NodeCgroups refused{.mode = cgroup::CgroupMode::kHybrid,
                                    .unclaimed = "hugetlb misc"};
  const cgroup::NodeCgroups allowed{.mode = cgroup::CgroupMode::kHybrid, .unclaimed = ""};
  Options options;
  options.path = dir.path();
  Write(dir / "crun", "", 0755);
  EXPECT_EQ(FindRuntime(options, refused).value_or(""), dir / "crun") << "there is no other";
  Write(dir / "runc", "", 0755);
  EXPECT_EQ(FindRuntime(options, refused).value_or(""), dir / "runc");
  EXPECT_EQ(FindRuntime(options, allowed).value_or(""), dir / "crun");
  options.binary_name = "crun";
  EXPECT_EQ(FindRuntime(options, refused).value_or(""), dir / "crun") << "it is asked for";
}

TEST(WhyItCannotRun, NamesWhatCrunRefusesAndWhatToDo) {
  const cgroup::NodeCgroups node{.mode = cgroup::CgroupMode::kHybrid, .unclaimed = "hugetlb misc"};
  EXPECT_THAT(WhyItCannotRun("/usr/bin/crun", node),
              AllOf(HasSubstr("'/usr/bin/crun' refuses"), HasSubstr("(hugetlb misc)"),
                    HasSubstr("mount -t cgroup -o hugetlb"), HasSubstr("BinaryName")));
  EXPECT_NE(WhyItCannotRun("/opt/crun-1.23", node), "");
  EXPECT_EQ(WhyItCannotRun("/usr/bin/runc", node), "");
  EXPECT_EQ(WhyItCannotRun("/usr/bin/crunchy", node), "");
  EXPECT_EQ(WhyItCannotRun("/usr/bin/crun", {}), "");
}

TEST(FindRuntime, SaysWhatToInstall) {
  const TempDir dir;
  Options options;
  options.path = dir.path();
  auto none = FindRuntime(options);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(none.error().message, HasSubstr("install the package crun or runc"));
  Write(dir / "data", "", 0644);
  options.binary_name = dir / "data";
  EXPECT_THAT(FindRuntime(options).error().message, HasSubstr("no such executable file"));
  options.binary_name = "youki";
  EXPECT_THAT(FindRuntime(options).error().message, HasSubstr("install the package youki"));
}

TEST(FindCriu, PutsItsDirectoryFirst) {
  const TempDir dir;
  Options options;
  options.path = "/bin";
  options.criu_path = dir / "criu";
  EXPECT_THAT(FindCriu(options).error().message, HasSubstr("install the package criu"));
  Write(dir / "criu", "", 0755);
  EXPECT_EQ(FindCriu(options).value_or(""), dir / "criu");
  EXPECT_EQ(SearchPath(options), dir.path() + ":/bin");
}

}  // namespace
}  // namespace gantry::runc
