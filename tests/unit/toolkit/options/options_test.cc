// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/options/options.h>

namespace gantry::options {
namespace {

using testing::ElementsAre;

struct Wanted {
  std::string text;
  std::string path = "/default";
  std::string folder = "/default";
  std::string program = "tool";
  bool flag = false;
  uint32_t number = 7;
  std::optional<std::chrono::milliseconds> time;
  std::vector<std::string> paths = {"/default"};
  std::string inner;
};

/// One key of a table of a backend's own.
Status SetTable(Wanted& wanted, const std::string& key, const nlohmann::json& value) {
  if (!value.is_object()) {
    return WrongType(key, "a table", value);
  }
  for (const auto& [name, inner] : value.items()) {
    GANTRY_TRY(wanted.inner, TextOf(Format("{}.{}", key, name), inner));
  }
  return {};
}

const OptionTable<Wanted>& Table() {
  static const OptionTable<Wanted> table = {
      {"text", Text(&Wanted::text)},
      {"path", AbsolutePath(&Wanted::path)},
      {"folder", PathOrNone(&Wanted::folder, EmptyPath::kKeeps)},
      {"none", PathOrNone(&Wanted::folder)},
      {"program", Program(&Wanted::program)},
      {"flag", Flag(&Wanted::flag)},
      {"number", Number(&Wanted::number, 1, 64)},
      {"time", Duration(&Wanted::time, 1000)},
      {"paths", AbsolutePaths(&Wanted::paths)},
      {"outer", SetTable},
      {"old", Ignored<Wanted>()},
  };
  return table;
}

TEST(Options, AreReadIntoTheirFields) {
  const auto read = Read(R"({"text": "t", "path": "/p", "program": "runc", "flag": true,
      "number": 64, "time": 5, "paths": ["/a", "/b"], "outer": {"inner": "i"}, "old": [1]})",
                         Wanted(), Table(), "test", nullptr);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->text, "t");
  EXPECT_EQ(read->path, "/p");
  EXPECT_EQ(read->program, "runc");
  EXPECT_TRUE(read->flag);
  EXPECT_EQ(read->number, 64U);
  EXPECT_EQ(read->time, std::chrono::milliseconds(5));
  EXPECT_THAT(read->paths, ElementsAre("/a", "/b"));
  EXPECT_EQ(read->inner, "i");
}

TEST(Options, WithoutTextAreTheBase) {
  for (const char* text : {"", "null", "{}", R"({"folder": ""})"}) {
    const auto read = Read(text, Wanted(), Table(), "test", nullptr);
    ASSERT_TRUE(read) << text;
    EXPECT_EQ(read->folder, "/default") << text;
  }
  EXPECT_EQ(Read(R"({"none": ""})", Wanted(), Table(), "test", nullptr)->folder, "");
}

class WrongOption : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(WrongOption, IsRefusedByName) {
  const auto read = Read(GetParam().first, Wanted(), Table(), "test", nullptr);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Code::kInvalidArgument);
  EXPECT_EQ(read.error().message, std::string("check ") + GetParam().second);
}

INSTANTIATE_TEST_SUITE_P(
    All, WrongOption,
    testing::Values(
        std::pair("[]", "the options of the test backend: no JSON object"),
        std::pair("{", "the options of the test backend: no JSON object"),
        std::pair(R"({"colour": 1})", "option 'colour': the test backend has no such key"),
        std::pair(R"({"text": 1})", "option 'text': must be a string, is number"),
        std::pair(R"({"path": ""})", "option 'path': '' is no absolute path"),
        std::pair(R"({"folder": "x"})", "option 'folder': 'x' is no absolute path"),
        std::pair(R"({"program": "a/b"})",
                  "option 'program': 'a/b' is neither an absolute path nor a plain name"),
        std::pair(R"({"flag": "yes"})", "option 'flag': must be true or false, is string"),
        std::pair(R"({"number": 1.5})", "option 'number': must be a whole number, is number"),
        std::pair(R"({"number": 0})", "option 'number': 0 is not from 1 to 64"),
        // Two to the power of 64, less what would be in range.
        std::pair(R"({"number": 18446744073709551615})",
                  "option 'number': 18446744073709551615 is not from 1 to 64"),
        std::pair(R"({"time": 0})", "option 'time': 0 is not from 1 to 1000"),
        std::pair(R"({"paths": "/a"})", "option 'paths': must be a list of directories, is string"),
        std::pair(R"({"paths": ["/a", "b"]})", "option 'paths': 'b' is no absolute path"),
        std::pair(R"({"outer": {"inner": 1}})",
                  "option 'outer.inner': must be a string, is number")));

TEST(Options, OfRequestsMayBeUnknown) {
  std::vector<std::string> unknown;
  const std::string text = R"({"colour": 1, ")" + std::string(200, 'x') + R"(": 2, "number": 3})";
  const auto read = Read(text, Wanted(), Table(), "test", &unknown);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->number, 3U);
  EXPECT_THAT(unknown, ElementsAre("colour", std::string(80, 'x')));
}

}  // namespace
}  // namespace gantry::options
