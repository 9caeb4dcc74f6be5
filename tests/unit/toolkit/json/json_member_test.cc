// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <gantry/toolkit/json/json_member.h>

namespace gantry {
namespace {

TEST(JsonMember, IsTheTextOfItsValue) {
  constexpr std::string_view kObject =
      R"( { "a" : 1 ,"b":{"a":2,"c":[{"a":3}]}, "text": "a\"}],:{\\" ,"none":null} )";
  EXPECT_EQ(JsonMember(kObject, "a"), "1");
  EXPECT_EQ(JsonMember(kObject, "b"), R"({"a":2,"c":[{"a":3}]})");
  EXPECT_EQ(JsonMember(kObject, "text"), R"("a\"}],:{\\")");
  EXPECT_EQ(JsonMember(kObject, "none"), "null");
}

TEST(JsonMember, IsEmptyWhereThereIsNone) {
  EXPECT_EQ(JsonMember(R"({"b":{"a":1}})", "a"), "");
  EXPECT_EQ(JsonMember(R"({"b":"a"})", "a"), "");
  EXPECT_EQ(JsonMember("{}", "a"), "");
  EXPECT_EQ(JsonMember("[1]", "a"), "");
  EXPECT_EQ(JsonMember("7", "a"), "");
}

TEST(JsonMember, IsTheLastOfSeveral) { EXPECT_EQ(JsonMember(R"({"a":1,"a":2})", "a"), "2"); }

TEST(JsonMember, IsInTheTextWhereThatIsNotWellFormed) {
  for (const std::string_view text :
       {"{", "{\"a", "{\"a\"", "{\"a\":", "{\"a\":\"\\", "{]]]}", "{:,"}) {
    EXPECT_LE(JsonMember(text, "a").size(), text.size()) << text;
  }
}

}  // namespace
}  // namespace gantry
