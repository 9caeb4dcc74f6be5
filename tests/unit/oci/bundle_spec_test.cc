// SPDX-License-Identifier: Apache-2.0
#include "core/oci/bundle_spec.h"

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"

namespace gantry::oci {
namespace {

using testing::HasSubstr;

constexpr char kSpec[] = R"({
  "ociVersion": "1.1.0", "process": {"args": ["true"], "cwd": "/"}, "root": {"path": "rootfs"},
  "linux": {"resources": {"memory": {"limit": 1048576}, "cpu": {"shares": 2}}}
})";

class ReadSpecTest : public testing::Test {
 protected:
  void SetUp() override {
    auto dir = os::TempDir::Create();
    ASSERT_TRUE(dir.has_value());
    dir_ = std::move(*dir);
  }

  // The error of a bundle whose config.json holds `text`.
  Error ErrorFor(std::string_view text) {
    EXPECT_TRUE(ReplaceFile(dir_.path() + "/config.json", text, 0600).has_value());
    auto spec = ReadSpec(dir_.path());
    return spec ? Error{Code::kOk, 0, "", ""} : spec.error();
  }

  os::TempDir dir_;
};

TEST_F(ReadSpecTest, ReadsAFile) { EXPECT_EQ(ErrorFor(kSpec).code, Code::kOk); }

TEST_F(ReadSpecTest, SaysThatThereIsNone) {
  const auto spec = ReadSpec(dir_.path());
  ASSERT_FALSE(spec.has_value());
  EXPECT_EQ(spec.error().code, Code::kNotFound);
  EXPECT_THAT(spec.error().message, HasSubstr(dir_.path() + "/config.json"));
}

TEST_F(ReadSpecTest, RefusesADirectory) {
  std::filesystem::create_directory(dir_.path() + "/config.json");
  const auto spec = ReadSpec(dir_.path());
  ASSERT_FALSE(spec.has_value());
  EXPECT_EQ(spec.error().code, Code::kInvalidArgument);
}

TEST_F(ReadSpecTest, RefusesFiftyMegabytes) {
  const Error error = ErrorFor(std::string(50 << 20, ' '));
  EXPECT_EQ(error.code, Code::kInvalidArgument);
  EXPECT_THAT(error.message, HasSubstr("config.json"));
}

TEST_F(ReadSpecTest, RefusesWrongResourcesWithTheirPlace) {
  std::string text = kSpec;
  text.replace(text.find("1048576"), 7, "\"1M\"");
  const Error error = ErrorFor(text);
  EXPECT_EQ(error.code, Code::kInvalidArgument);
  EXPECT_THAT(error.message,
              HasSubstr(dir_.path() + "/config.json': /linux/resources/memory/limit: expected an "
                                      "integer, found a string"));
}

TEST(ResourcesOf, GivesWhatTheSpecLimits) {
  const auto spec = ParseSpec(kSpec, "f");
  ASSERT_TRUE(spec.has_value()) << spec.error().message;
  const auto resources = ResourcesOf(*spec);
  ASSERT_TRUE(resources.has_value()) << resources.error().message;
  EXPECT_EQ(resources->memory.limit_bytes, 1048576);
  EXPECT_EQ(resources->cpu.shares, 2U);
}

TEST(ResourcesOf, IsEmptyWhereThereAreNone) {
  const auto resources = ResourcesOf(Spec{});
  ASSERT_TRUE(resources.has_value());
  EXPECT_FALSE(resources->memory.limit_bytes.has_value());
}

}  // namespace
}  // namespace gantry::oci
