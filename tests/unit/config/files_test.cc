// SPDX-License-Identifier: Apache-2.0
//
// Every file of config/ is loaded as its reader would.
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <gantry/toolkit/files/files.h>

#include "core/config/config.h"
#include "core/oci/toml.h"

namespace gantry::config {
namespace {

const std::string kFolder = std::string(GANTRY_SOURCE_DIR) + "/config/";

TEST(ConfigFiles, GantryYamlIsAllDefaults) {
  const auto config = Load(kFolder + "gantry.yaml");
  ASSERT_TRUE(config.has_value()) << config.error().message;
  const Config built_in = Defaults();
  EXPECT_EQ(config->log_level, built_in.log_level);
  EXPECT_EQ(config->default_handler, built_in.default_handler);
  EXPECT_EQ(config->handlers.size(), built_in.handlers.size());
  EXPECT_EQ(config->backends.size(), built_in.backends.size());
  EXPECT_EQ(config->limits, built_in.limits);
  EXPECT_EQ(config->timeouts, built_in.timeouts);
  EXPECT_EQ(config->events, built_in.events);
  EXPECT_EQ(config->io, built_in.io);
  EXPECT_EQ(config->hang, built_in.hang);
  EXPECT_EQ(config->grpc, built_in.grpc);
  EXPECT_EQ(config->metrics, built_in.metrics);
  EXPECT_EQ(config->tracing, built_in.tracing);
}

// A key that a reader knows is named in the errors for unknown keys, so this
// finds each one that the file does not document.
TEST(ConfigFiles, GantryYamlDocumentsEveryKey) {
  const auto text = ReadFile(kFolder + "gantry.yaml", 1 << 20);
  ASSERT_TRUE(text.has_value());
  for (const std::string section :
       {"log", "limits", "timeouts", "events", "io", "hang", "grpc", "metrics", "tracing"}) {
    const auto error = Parse(section + ": {no_such_key: 1}", "f");
    ASSERT_FALSE(error.has_value());
    std::string known = error.error().message;
    known.erase(0, known.rfind(": ") + 2);
    while (!known.empty()) {
      const size_t comma = std::min(known.find(", "), known.size());
      EXPECT_THAT(*text, testing::HasSubstr("\n  " + known.substr(0, comma) + ": "));
      known.erase(0, comma + 2);
    }
  }
}

TEST(ConfigFiles, ContainerdSnippetsAreToml) {
  for (const char* const name : {"containerd-1.7.toml", "containerd-2.toml"}) {
    const auto text = ReadFile(kFolder + name, 1 << 20);
    ASSERT_TRUE(text.has_value()) << text.error().message;
    const auto json = oci::TomlToJson(*text, name);
    ASSERT_TRUE(json.has_value()) << json.error().message;
    EXPECT_THAT(*json, testing::HasSubstr("io.containerd.gantry.v1"));
  }
}

/// The blocks of TOML in a page.
std::vector<std::string> TomlOf(const std::string& page) {
  const std::string begin = "```toml\n";
  std::vector<std::string> blocks;
  for (size_t at = page.find(begin); at != std::string::npos; at = page.find(begin, at)) {
    at += begin.size();
    blocks.push_back(page.substr(at, page.find("```", at) - at));
  }
  return blocks;
}

TEST(ConfigFiles, BlocksOfThePageAreToml) {
  const auto page = ReadFile(std::string(GANTRY_SOURCE_DIR) + "/docs/kubernetes.md", 1 << 20);
  ASSERT_TRUE(page.has_value()) << page.error().message;
  for (const std::string& block : TomlOf(*page)) {
    const auto json = oci::TomlToJson(block, "kubernetes.md");
    ASSERT_TRUE(json.has_value()) << json.error().message;
    EXPECT_THAT(*json, testing::ContainsRegex("io.containerd.gantry.v1|containerd-shim-gantry-v1"))
        << block;
  }
}

TEST(ConfigFiles, RuntimeClassesNameTheRuntimesOfThePage) {
  const auto page = ReadFile(std::string(GANTRY_SOURCE_DIR) + "/docs/kubernetes.md", 1 << 20);
  ASSERT_TRUE(page.has_value()) << page.error().message;
  std::vector<std::string> blocks = TomlOf(*page);
  // The others are lines to add to one that is there.
  std::erase_if(blocks, [](const std::string& block) { return !block.starts_with("version"); });
  EXPECT_EQ(blocks.size(), 2U) << "containerd 2.x and 1.7";
  const std::vector<YAML::Node> classes = YAML::LoadAllFromFile(kFolder + "runtimeclass.yaml");
  EXPECT_EQ(classes.size(), 4U);
  for (const YAML::Node& one : classes) {
    EXPECT_EQ(one["apiVersion"].as<std::string>(), "node.k8s.io/v1");
    EXPECT_EQ(one["kind"].as<std::string>(), "RuntimeClass");
    EXPECT_NE(one["metadata"]["name"].as<std::string>(), "");
    for (const std::string& block : blocks) {
      const auto json = oci::TomlToJson(block, "kubernetes.md");
      ASSERT_TRUE(json.has_value()) << json.error().message;
      EXPECT_THAT(*json, testing::HasSubstr('"' + one["handler"].as<std::string>() + "\" : {"));
    }
  }
}

TEST(ConfigFiles, AreAllKnownToThisTest) {
  const std::set<std::string> loaded = {"gantry.yaml", "containerd-1.7.toml", "containerd-2.toml",
                                        "runtimeclass.yaml"};
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    const std::string name = entry.path().filename();
    if (name.ends_with(".yaml") || name.ends_with(".toml")) {
      EXPECT_TRUE(loaded.contains(name)) << name << " is loaded by no test";
    }
  }
}

}  // namespace
}  // namespace gantry::config
