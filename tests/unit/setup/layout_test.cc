// SPDX-License-Identifier: Apache-2.0
#include "core/setup/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"

namespace gantry::setup {
namespace {

void Make(const std::string& path) {
  ASSERT_TRUE(os::MakeDirs(path.substr(0, path.rfind('/')), 0755));
  ASSERT_TRUE(WriteFile(path, "", 0644));
}

TEST(Layout, IsContainerdsOwnWhereNothingElseIsThere) {
  const auto root = os::TempDir::Create();
  const auto layout = FindLayout(root->path(), "", "");
  ASSERT_TRUE(layout.has_value());
  EXPECT_EQ(layout->config, root->path() + "/etc/containerd/config.toml");
  EXPECT_FALSE(layout->generated);
  EXPECT_THAT(layout->Candidates(),
              testing::Contains(root->path() + "/etc/containerd/conf.d/gantry.toml"));
}

TEST(Layout, IsThatOfADistributionByItsFile) {
  const auto root = os::TempDir::Create();
  const std::string folder = root->path() + "/var/lib/rancher/k3s/agent/etc/containerd";
  Make(folder + "/config.toml");
  const auto layout = FindLayout(root->path(), "", "");
  ASSERT_TRUE(layout.has_value());
  EXPECT_EQ(layout->distribution, "k3s");
  EXPECT_TRUE(layout->generated);
  EXPECT_EQ(layout->TemplateOf(2), folder + "/config.toml.tmpl");
  EXPECT_EQ(layout->TemplateOf(3), folder + "/config-v3.toml.tmpl");
  EXPECT_THAT(layout->Candidates(), testing::Contains(folder + "/config-v3.toml.d/gantry.toml"));
  // A file that is named is containerd's own.
  EXPECT_EQ(FindLayout(root->path(), "", "/etc/x.toml")->distribution, "containerd");
}

TEST(Layout, IsNotGuessedOfTwo) {
  const auto root = os::TempDir::Create();
  for (const char* const name : {"k3s", "rke2"}) {
    Make(root->path() + "/var/lib/rancher/" + name + "/agent/etc/containerd/config.toml");
  }
  const auto layout = FindLayout(root->path(), "", "");
  ASSERT_FALSE(layout.has_value());
  EXPECT_THAT(layout.error().message, testing::HasSubstr("--distribution"));
  EXPECT_EQ(FindLayout(root->path(), "rke2", "")->distribution, "rke2");
  EXPECT_FALSE(FindLayout(root->path(), "k0s", "").has_value());
}

TEST(Layout, FindsFoldersOfWhichEachFileIsRead) {
  Layout layout;
  layout.config = "/etc/containerd/config.toml";
  ConfigFile parsed;
  parsed.imports = {"/etc/containerd/conf.d/*.toml", "more/*.toml", "/etc/one.toml",
                    "/etc/*/x/*.toml", "/etc/a*.toml"};
  EXPECT_THAT(layout.DropInFolders(parsed),
              testing::ElementsAre("/etc/containerd/conf.d", "/etc/containerd/more"));
}

}  // namespace
}  // namespace gantry::setup
