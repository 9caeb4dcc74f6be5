// SPDX-License-Identifier: Apache-2.0
//
// With the runc backend's plugin, and a script for its OCI runtime.
#include "core/engine/features.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "core/config/config.h"
#include "core/os/fs.h"
#include "proto/containerd/runc.pb.h"

namespace gantry::engine {
namespace {

using testing::HasSubstr;

class FindFeaturesTest : public testing::Test {
 protected:
  FindFeaturesTest() {
    // The plugin that was built may be another user's.
    EXPECT_TRUE(os::MakeDirs(Path("libexec/plugins"), 0755));
    const std::string plugin = Path("libexec/plugins/libgantry_runc.so");
    std::filesystem::copy_file(GANTRY_RUNC_PLUGIN, plugin);
    EXPECT_EQ(chmod(plugin.c_str(), 0755), 0);
    line_.libexec = Path("libexec");
    line_.run_dir = Path("run");
    Script("one");
    Script("other");
  }

  std::string Path(const std::string& name) const { return dir_.path() + "/" + name; }

  void Script(const std::string& name) const {
    std::ofstream(Path(name)) << "#!/bin/sh\necho '{\"mountOptions\": [\"" << name << "\"]}'\n";
    EXPECT_EQ(chmod(Path(name).c_str(), 0755), 0);
  }

  Result<std::string> Find(const FeaturesQuestion& question) const {
    auto config =
        config::Parse(Format("default_handler: a\n"
                             "handlers:\n"
                             "  a: {{backend: runc, options: {{BinaryName: {0}/one}}}}\n"
                             "  b: {{backend: runc, options: {{BinaryName: {0}/other}}}}\n",
                             dir_.path()),
                      "gantry.yaml");
    return config ? FindFeatures(*config, line_, question)
                  : Result<std::string>(std::unexpected(config.error()));
  }

  os::TempDir dir_ = os::TempDir::Create().value();
  CommandLine line_;
};

TEST_F(FindFeaturesTest, AreThoseOfTheHandlersOciRuntime) {
  const auto found = Find({});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(*found, "{\"mountOptions\": [\"one\"]}\n");
  EXPECT_THAT(Find({.handler = "b"}).value_or(""), HasSubstr("other"));
}

TEST_F(FindFeaturesTest, AreThoseOfTheRuntimeThatContainerdsOptionsName) {
  containerd::runc::v1::Options options;
  options.set_binary_name(Path("other"));
  const auto found =
      Find({.options_type = "containerd.runc.v1.Options", .options = options.SerializeAsString()});
  EXPECT_THAT(found.value_or(""), HasSubstr("other"));
}

TEST_F(FindFeaturesTest, AreKeptInTheRunDirectoryWhereThereIsOne) {
  ASSERT_TRUE(Find({}));
  EXPECT_FALSE(Exists(line_.run_dir));
  ASSERT_TRUE(os::MakeDirs(line_.run_dir, 0700));
  ASSERT_TRUE(Find({}));
  const std::string dir = line_.run_dir + "/features/runc";
  EXPECT_EQ(ListDirectory(dir, 10).value_or(std::vector<std::string>()).size(), 1U);
}

TEST_F(FindFeaturesTest, OfAHandlerThatIsNotThereAreAnError) {
  const auto found = Find({.handler = "absent"});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Code::kInvalidArgument);
  EXPECT_EQ(found.error().message, "find handler 'absent': not in the configuration 'gantry.yaml'");
}

}  // namespace
}  // namespace gantry::engine
