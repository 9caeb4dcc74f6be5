// SPDX-License-Identifier: Apache-2.0
#include "core/setup/release.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::setup {
namespace {

using testing::HasSubstr;

// What the releases themselves write, and those of Debian, k3s and Docker.
TEST(ReleaseOfContainerd, IsReadFromWhatItSays) {
  const std::pair<const char*, Release> kSaid[] = {
      {"containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+b1\n", {1, 6, 20}},
      {"containerd github.com/containerd/containerd 1.7.24~ds1 1.7.24~ds1-6+deb13u1", {1, 7, 24}},
      {"containerd github.com/containerd/containerd/v2 v2.1.9 \n", {2, 1, 9}},
      {"containerd github.com/containerd/containerd/v2 2.3.4+unknown \n", {2, 3, 4}},
      {"containerd github.com/k3s-io/containerd v1.7.23-k3s2 f9b0a3e\n", {1, 7, 23}},
      {"containerd containerd.io 1.7.27 05044ec0a9a75232cad458027ca83437aae3f4da", {1, 7, 27}},
      {"containerd github.com/containerd/containerd/v2 v2.4.0-beta.1 abc", {2, 4, 0}},
  };
  for (const auto& [text, release] : kSaid) {
    const auto parsed = ParseRelease(text);
    ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
    EXPECT_EQ(*parsed, release) << text;
  }
}

TEST(ReleaseOfContainerd, IsRefusedWhereNobodyKnowsIt) {
  for (const char* const text :
       {"containerd x 1.5.9", "containerd x v3.0.0", "containerd x 0.2.1"}) {
    const auto parsed = ParseRelease(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_EQ(parsed.error().code, Code::kUnimplemented);
    EXPECT_THAT(parsed.error().message, HasSubstr("docs/kubernetes.md"));
  }
  for (const char* const text :
       {"", "\n2.3.4", "containerd v2", "containerd v2.x.1", "99999999999.1.1"}) {
    const auto parsed = ParseRelease(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_EQ(parsed.error().code, Code::kInvalidArgument);
  }
}

TEST(ReleaseOfContainerd, KnowsWhichConfigurationsItReads) {
  EXPECT_EQ((Release{1, 6, 20}).LatestConfig(), 2);
  EXPECT_EQ((Release{2, 2, 9}).LatestConfig(), 3);
  EXPECT_EQ((Release{2, 3, 0}).LatestConfig(), 4);
  EXPECT_FALSE((Release{1, 7, 24}).MergesImports());
  EXPECT_TRUE((Release{2, 0, 0}).MergesImports());
}

TEST(SandboxerOfARelease, IsRefusedWhereItsPodsWouldFail) {
  EXPECT_TRUE(CheckSandboxer({1, 6, 20}, Sandboxer::kPodsandbox));
  EXPECT_TRUE(CheckSandboxer({1, 7, 24}, Sandboxer::kShim));
  EXPECT_TRUE(CheckSandboxer({2, 3, 0}, Sandboxer::kShim));
  EXPECT_TRUE(CheckSandboxer({2, 0, 14}, Sandboxer::kController));
  EXPECT_THAT(CheckSandboxer({1, 6, 20}, Sandboxer::kShim).error().message, HasSubstr("has none"));
  EXPECT_THAT(CheckSandboxer({2, 2, 9}, Sandboxer::kShim).error().message, HasSubstr("dies of"));
  EXPECT_THAT(CheckSandboxer({1, 7, 24}, Sandboxer::kController).error().message,
              HasSubstr("'podsandbox'"));
}

TEST(SandboxerOfARelease, IsAWord) {
  EXPECT_EQ(*ParseSandboxer("controller"), Sandboxer::kController);
  EXPECT_FALSE(ParseSandboxer("").has_value());
  EXPECT_FALSE(ParseSandboxer("Shim").has_value());
}

}  // namespace
}  // namespace gantry::setup
