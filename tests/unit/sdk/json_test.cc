// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <gantry/json.h>

namespace gantry {
namespace {

using testing::HasSubstr;

std::string CheckError(std::string_view text, const JsonLimits& limits = {}) {
  const Status checked = CheckJson(text, "doc", limits);
  return checked ? "no error" : checked.error().message;
}

std::string Levels(size_t count) { return std::string(count, '[') + std::string(count, ']'); }

TEST(ForeignJson, HasLimitsOfAllThatItCosts) {
  EXPECT_EQ(CheckError(Levels(64)), "no error");
  EXPECT_THAT(CheckError(Levels(65)), HasSubstr("parse 'doc': line 1, column 65: nested deeper"));
  EXPECT_EQ(CheckError("[1,2]", {.values = 3}), "no error");
  EXPECT_EQ(CheckError("[1,2,3]", {.values = 3}), "parse 'doc': more than 3 values");
  EXPECT_EQ(CheckError("[[]]", {.values = 2}), "parse 'doc': more than 2 values");
  EXPECT_EQ(CheckError("[1,2]", {.bytes = 5}), "no error");
  EXPECT_EQ(CheckError("[1,2]", {.bytes = 4}), "parse 'doc': more than 4 bytes");
}

TEST(ForeignJson, IsNotCountedWhereItIsText) {
  EXPECT_EQ(CheckError(R"(["[[[[,,,,\"[[[[,,,,"])", {.depth = 1, .values = 2}), "no error");
}

TEST(ForeignJson, IsMadeOfNothingThatIsRefused) {
  for (const std::string& text : {Levels(65), Levels(60'000), std::string(1 << 20, '['),
                                  std::string("{"), std::string("\"\xff\""), std::string()}) {
    EXPECT_TRUE(ReadJson(text).is_discarded());
    EXPECT_FALSE(ParseJson(text, "doc").has_value());
    EXPECT_NE(CheckError(text), "no error");
  }
}

TEST(ForeignJson, IsWhatItSays) {
  EXPECT_EQ(ReadJson(R"({"a":[1]})")["a"][0], 1);
  EXPECT_EQ((*ParseJson("[null]", "doc"))[0], nullptr);
}

}  // namespace
}  // namespace gantry
