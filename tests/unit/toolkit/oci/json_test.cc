// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/oci/json.h>

namespace gantry::oci {
namespace {

using testing::HasSubstr;

std::string ParseError(std::string_view text) {
  const auto json = Json::Parse(text, "doc");
  return json ? "no error" : json.error().message;
}

TEST(JsonParse, SaysWhereTheSyntaxIsWrong) {
  EXPECT_THAT(ParseError("{\n  \"a\": 1,\n  b\n}"), HasSubstr("parse 'doc': line 3, column 3"));
  EXPECT_THAT(ParseError(""), HasSubstr("parse 'doc': line 1, column 1"));
  EXPECT_THAT(ParseError("{\"a\": [1, 2"), HasSubstr("line 1, column"));
}

TEST(JsonParse, KeepsItsComplaintShort) {
  EXPECT_LT(ParseError("[" + std::string(1 << 20, 'x')).size(), 400U);
  EXPECT_LT(ParseError("[\"" + std::string(1 << 20, 'x')).size(), 400U);
}

TEST(JsonParse, RefusesWhatIsNotUtf8) { EXPECT_NE(ParseError("\"\xff\""), "no error"); }

TEST(JsonParse, BoundsDepthAndNumberOfValues) {
  EXPECT_EQ(ParseError(std::string(64, '[') + std::string(64, ']')), "no error");
  EXPECT_THAT(ParseError(std::string(65, '[') + std::string(65, ']')),
              HasSubstr("nested deeper than 64 levels"));
  EXPECT_THAT(ParseError(std::string(1 << 20, '[')), HasSubstr("nested deeper"));
  std::string many = "[0";
  for (int i = 0; i < 600'000; ++i) {
    many += ",0";
  }
  EXPECT_THAT(ParseError(many + "]"), HasSubstr("more than 500000 values"));
  EXPECT_EQ(ParseError("\"" + std::string(100, '[') + "\""), "no error");
  EXPECT_EQ(ParseError("\"\\\"" + std::string(100, '[') + "\""), "no error");
}

TEST(JsonRead, TellsAbsentAndNullFromWrong) {
  const auto json =
      Json::Parse(R"({"n": null, "s": "x", "i": -1, "f": 1.5, "big": 5000000000})", "doc");
  ASSERT_TRUE(json.has_value());
  std::string text = "kept";
  EXPECT_TRUE((*json)["none"].Read(text).has_value());
  EXPECT_TRUE((*json)["n"].Read(text).has_value());
  EXPECT_TRUE((*json)["none"]["below"].Read(text).has_value());
  EXPECT_EQ(text, "kept");
  uint32_t number = 7;
  EXPECT_EQ((*json)["s"].Read(number).error().message,
            "check 'doc': /s: expected an integer, found a string");
  EXPECT_EQ((*json)["i"].Read(number).error().message,
            "check 'doc': /i: must not be negative, found -1");
  EXPECT_EQ((*json)["big"].Read(number).error().message,
            "check 'doc': /big: above 4294967295, found 5000000000");
  EXPECT_EQ((*json)["f"].Read(number).error().message,
            "check 'doc': /f: expected an integer, found a fraction");
  EXPECT_EQ(number, 7U);
}

TEST(JsonRead, EscapesItsPointers) {
  const auto json = Json::Parse(R"({"a/b": {"c~d": [true]}})", "doc");
  ASSERT_TRUE(json.has_value());
  std::vector<std::string> list;
  EXPECT_EQ((*json)["a/b"]["c~d"].Read(list).error().message,
            "check 'doc': /a~1b/c~0d/0: expected a string, found a boolean");
}

TEST(JsonRead, RefusesNulInStrings) {
  const auto json = Json::Parse(R"({"s": "a\u0000b"})", "doc");
  ASSERT_TRUE(json.has_value());
  std::string text;
  EXPECT_FALSE((*json)["s"].Read(text).has_value());
}

TEST(JsonRead, OutlivesTheTextAndTheRoot) {
  Json inner = [] {
    std::string text = R"({"a": {"b": "value"}})";
    return (*Json::Parse(text, "doc"))["a"];
  }();
  std::string out;
  ASSERT_TRUE(inner["b"].Read(out).has_value());
  EXPECT_EQ(out, "value");
}

TEST(MergeObjects, PutsTheSecondOnTopKeyByKey) {
  const auto merged =
      MergeObjects(R"({"a": 1, "o": {"x": 1, "y": 2}})", R"({"o": {"y": 3}, "b": []})");
  ASSERT_TRUE(merged.has_value());
  EXPECT_EQ(*merged, R"({"a":1,"b":[],"o":{"x":1,"y":3}})");
  EXPECT_EQ(*MergeObjects("", ""), "{}");
  EXPECT_FALSE(MergeObjects("[]", "").has_value());
}

TEST(Quote, EscapesAndReplacesWhatIsNotUtf8) {
  EXPECT_EQ(Quote("a\"b\n"), R"("a\"b\n")");
  EXPECT_EQ(Quote("\xff"), "\"\xef\xbf\xbd\"");
}

}  // namespace
}  // namespace gantry::oci
