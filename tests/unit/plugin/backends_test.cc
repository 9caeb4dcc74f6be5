// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/backends.h"

#include <sys/stat.h>

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/os/fs.h"

namespace gantry::plugin {
namespace {

using ::testing::HasSubstr;

class BackendsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(dir_.path() + "/plugins");
    Install("good");
  }

  /// As an installation does it: what is loaded stays as it is.
  void Install(const std::string& plugin) {
    const std::string copy = dir_.path() + "/copy";
    std::filesystem::copy_file(std::string(TEST_PLUGIN_DIR) + "/" + plugin + ".so", copy);
    chmod(copy.c_str(), 0755);
    std::filesystem::rename(copy, file_);
  }

  Backends Made(const std::string& probe = TEST_PROBE_PROGRAM) {
    return Backends(config_, dir_.path(), dir_.path() + "/run", probe);
  }

  os::TempDir dir_ = os::TempDir::Create().value();
  std::string file_ = dir_.path() + "/plugins/libgantry_test.so";
  config::Config config_ = config::Defaults();
};

TEST_F(BackendsTest, FindsABackendBesideTheEngine) {
  Backends backends = Made();
  const auto backend = backends.Find("test");
  ASSERT_TRUE(backend.has_value()) << backend.error().message;
  EXPECT_EQ(*backends.Find("test"), *backend);
  ASSERT_EQ(backends.States().size(), 1u);
  EXPECT_EQ(backends.States()[0].version, "1.2.3");
  EXPECT_EQ(backends.States()[0].path, file_);
}

TEST_F(BackendsTest, RemembersWhatWasRefusedUntilItIsTaken) {
  std::filesystem::remove(file_);
  Backends backends = Made();
  EXPECT_EQ(backends.Find("test").error().code, Code::kNotFound);
  ASSERT_EQ(backends.States().size(), 1u);
  EXPECT_THAT(backends.States()[0].error, HasSubstr("install the plugin"));
  Install("good");
  EXPECT_TRUE(backends.Find("test").has_value());
  ASSERT_EQ(backends.States().size(), 1u);
  EXPECT_EQ(backends.States()[0].error, "");
}

TEST_F(BackendsTest, ProbesAFileOnce) {
  ASSERT_TRUE(Made().Find("test").has_value());
  EXPECT_TRUE(Made("/nonexistent/probe").Find("test").has_value());
  Install("throws");
  EXPECT_FALSE(Made("/nonexistent/probe").Find("test").has_value());
}

TEST_F(BackendsTest, OutlivesAPluginThatCrashesWhenItIsLoaded) {
  Install("crashes");
  EXPECT_THAT(Made().Find("test").error().message, HasSubstr("it crashes when it is loaded"));
}

TEST_F(BackendsTest, AsksThoseInUseForTheirCounts) {
  Backends backends = Made();
  EXPECT_TRUE(backends.Counts().empty());
  ASSERT_TRUE(backends.Find("test").has_value());
  const auto counts = backends.Counts();
  ASSERT_EQ(counts.size(), 1U);
  ASSERT_EQ(counts.at("test").size(), 1U);
  EXPECT_EQ(counts.at("test")[0].handler, "fast");
  EXPECT_EQ(counts.at("test")[0].value, 3U);
  EXPECT_TRUE(backends.Counts().empty()) << "one that throws counts nothing";
  backends.Leave();
}

TEST_F(BackendsTest, SaysWhereAnOptionIsRefused) {
  const auto config =
      config::Parse("handlers:\n  x:\n    backend: test\n    options: {Speed: 5}\n", "g.yaml");
  ASSERT_TRUE(config.has_value()) << config.error().message;
  Backends backends = Made();
  const auto backend = backends.Find("test");
  ASSERT_TRUE(backend.has_value()) << backend.error().message;
  const Status checked = CheckOptions(*config, "x", *config->FindHandler("x"), **backend);
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().code, Code::kInvalidArgument);
  EXPECT_EQ(checked.error().message, "g.yaml:4: handler 'x': check option 'Speed': no such key");
}

}  // namespace
}  // namespace gantry::plugin
