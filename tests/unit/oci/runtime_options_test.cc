// SPDX-License-Identifier: Apache-2.0
#include "core/oci/runtime_options.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"
#include "proto/containerd/runc.pb.h"
#include "proto/containerd/runtimeoptions.pb.h"

namespace gantry::oci {
namespace {

constexpr char kTomlType[] = "runtimeoptions.v1.Options";

std::string WithBody(const std::string& toml) {
  runtimeoptions::v1::Options message;
  message.set_config_body(toml);
  return message.SerializeAsString();
}

TEST(RuntimeOptions, AreEmptyWhenAbsentOrOfAnUnknownType) {
  for (const char* const type : {"", "type.example/unknown.Type"}) {
    const auto options = DecodeRuntimeOptions(type, "\xff\xff");
    ASSERT_TRUE(options.has_value());
    EXPECT_EQ(options->json, "{}");
    EXPECT_EQ(options->handler, "");
  }
}

TEST(RuntimeOptions, OfRuncGetTheNamesOfTheToml) {
  containerd::runc::v1::Options message;
  message.set_binary_name("crun");
  message.set_root("/run/\"x\"");
  message.set_systemd_cgroup(true);
  message.set_io_uid(1000);
  message.set_task_api_address("ttrpc+unix:///a");
  message.set_task_api_version(3);
  for (const char* const type :
       {"containerd.runc.v1.Options", "type.googleapis.com/containerd.runc.v1.Options"}) {
    const auto options = DecodeRuntimeOptions(type, message.SerializeAsString());
    ASSERT_TRUE(options.has_value());
    EXPECT_EQ(options->json,
              R"({"IoUid":1000,"BinaryName":"crun","Root":"/run/\"x\"","SystemdCgroup":true})");
    EXPECT_EQ(options->task_api_address, "ttrpc+unix:///a");
    EXPECT_EQ(options->task_api_version, 3U);
  }
}

TEST(RuntimeOptions, AsTomlAreTheSameKeys) {
  // What containerd 1.7 and 2.x make of a handler's table.
  for (const char* const toml : {"BinaryName = \"crun\"\nHandler = \"fast\"\nn = 5\n",
                                 "BinaryName = 'crun'\nHandler = 'fast'\nn = 5\n"}) {
    const auto options = DecodeRuntimeOptions(kTomlType, WithBody(toml));
    ASSERT_TRUE(options.has_value()) << options.error().message;
    EXPECT_EQ(options->json, R"({"BinaryName":"crun","n":5})");
    EXPECT_EQ(options->handler, "fast");
  }
}

TEST(RuntimeOptions, AsTomlMayNest) {
  const auto options =
      DecodeRuntimeOptions(kTomlType, WithBody("[a]\nb = [1, 2.5]\nc = true\nd = 2020-01-02\n"));
  ASSERT_TRUE(options.has_value()) << options.error().message;
  EXPECT_EQ(options->json, R"({"a":{"b":[1,2.5],"c":true,"d":"2020-01-02"}})");
}

// The undefined-behaviour sanitizer ends the process where the parser is wrong.
TEST(RuntimeOptions, RefuseTomlKeysThatAreNotAscii) {
  for (const char* const toml : {"\u00e9 = 1\n", "\ufef7Handler = 'x'\n", "a = \u00e9\n"}) {
    EXPECT_FALSE(DecodeRuntimeOptions(kTomlType, WithBody(toml)).has_value()) << toml;
  }
  EXPECT_TRUE(DecodeRuntimeOptions(kTomlType, WithBody("a = '\u00e9' # \ufef7\n")).has_value());
}

// The parser's assertion ends the process where it is wrong.
TEST(RuntimeOptions, RefuseTomlTablesWithoutAName) {
  for (const char* const toml : {"[(", "[=", "[[(a", "[ (a]"}) {
    EXPECT_FALSE(DecodeRuntimeOptions(kTomlType, WithBody(toml)).has_value()) << toml;
  }
}

TEST(RuntimeOptions, SayWhereTheTomlIsWrong) {
  const auto options = DecodeRuntimeOptions(kTomlType, WithBody("a = 1\nb = = 2\n"));
  ASSERT_FALSE(options.has_value());
  EXPECT_EQ(options.error().code, Code::kInvalidArgument);
  EXPECT_THAT(options.error().message,
              testing::StartsWith("parse 'runtime options': line 2, column 5: "));
}

TEST(RuntimeOptions, RefuseMalformedMessages) {
  for (const char* const type : {"containerd.runc.v1.Options", kTomlType}) {
    const auto options = DecodeRuntimeOptions(type, "\xff\xff\xff");
    ASSERT_FALSE(options.has_value());
    EXPECT_EQ(options.error().code, Code::kInvalidArgument);
  }
  EXPECT_FALSE(DecodeRuntimeOptions(kTomlType, WithBody("Handler = 5\n")).has_value());
  EXPECT_FALSE(DecodeRuntimeOptions(kTomlType, WithBody(std::string(2 << 20, '#'))).has_value());
}

TEST(RuntimeOptions, InAFileAreBelowThoseInTheMessage) {
  const auto dir = os::TempDir::Create();
  ASSERT_TRUE(dir.has_value());
  RuntimeOptions options;
  options.config_path = dir->path() + "/o.toml";
  options.json = R"({"BinaryName":"crun"})";
  EXPECT_EQ(ReadConfigPath(options).error().code, Code::kNotFound);
  ASSERT_TRUE(
      ReplaceFile(options.config_path, "BinaryName = 'runc'\nRoot = '/r'\nHandler = 'h'\n", 0600)
          .has_value());
  ASSERT_TRUE(ReadConfigPath(options).has_value());
  EXPECT_EQ(options.json, R"({"BinaryName":"crun","Root":"/r"})");
  EXPECT_EQ(options.handler, "h");
}

}  // namespace
}  // namespace gantry::oci
