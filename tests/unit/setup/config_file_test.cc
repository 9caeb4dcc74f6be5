// SPDX-License-Identifier: Apache-2.0
#include "core/setup/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/setup/samples.h"

namespace gantry::setup {
namespace {

using testing::HasSubstr;

TEST(ConfigFile, IsReadOfEachRelease) {
  for (const auto& [text, version] : {std::pair(kDefault17, 2),
                                      {kDefault21, 3},
                                      {kDefault23, 4},
                                      {kDebian, 2},
                                      {kK3s, 3},
                                      {kRke2First, 2}}) {
    const auto config = ParseConfig(text, "f");
    ASSERT_TRUE(config.has_value()) << config.error().message;
    EXPECT_EQ(config->version, version);
    EXPECT_FALSE(config->cri_disabled);
  }
  EXPECT_EQ(ParseConfig(kDefault17, "f")->runtimes.at("runc"), "io.containerd.runc.v2");
  EXPECT_EQ(ParseConfig(kDefault23, "f")->runtimes.at("runc"), "io.containerd.runc.v2");
  EXPECT_THAT(ParseConfig(kDefault23, "f")->imports,
              testing::ElementsAre("/etc/containerd/conf.d/*.toml"));
}

TEST(ConfigFile, KnowsThatCriIsDisabled) {
  for (const char* const text : {"disabled_plugins = [\"cri\"]",
                                 "disabled_plugins = [\"a\", \"io.containerd.grpc.v1.cri\"]"}) {
    EXPECT_TRUE(ParseConfig(text, "f")->cri_disabled);
  }
}

TEST(ConfigFile, SaysWhereItIsBroken) {
  const auto config = ParseConfig("version = 2\n[plugins\n", "/etc/c.toml");
  ASSERT_FALSE(config.has_value());
  EXPECT_EQ(config.error().code, Code::kInvalidArgument);
  EXPECT_THAT(config.error().message, HasSubstr("'/etc/c.toml': line 2"));
  EXPECT_FALSE(ParseConfig("version = \"2\"", "f").has_value());
  EXPECT_FALSE(ParseConfig("version = -1", "f").has_value());
}

TEST(ConfigFile, OfOddShapesHasWhatCanBeRead) {
  const auto config = ParseConfig(
      "version = 2\nimports = [1, \"/a\"]\nplugins = 3\nproxy_plugins = []\ndisabled_plugins = 1\n",
      "f");
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_THAT(config->imports, testing::ElementsAre("/a"));
  EXPECT_TRUE(config->runtimes.empty());
}

TEST(Dumps, AreEqualBesideTheRuntimes) {
  const std::string before = kDefault23;
  const std::string ours =
      "[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.gantry]\nruntime_type = 'x'\n"
      "[proxy_plugins.gantry]\ntype = 'sandbox'\n";
  EXPECT_TRUE(SameBut(before, before + ours, {"gantry"}).has_value());
  const Status other = SameBut(before, before + ours, {"wasm"});
  ASSERT_FALSE(other.has_value());
  EXPECT_THAT(other.error().message,
              HasSubstr("'plugins.io.containerd.cri.v1.runtime.containerd.runtimes.gantry'"));
  EXPECT_FALSE(SameBut(before, before + "[timeouts]\na = '1s'\n", {"gantry"}).has_value());
}

}  // namespace
}  // namespace gantry::setup
