// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include <gantry/toolkit/json/json_end.h>

namespace gantry {
namespace {

/// The object that `text` begins with, told in portions of `size` bytes.
std::string ObjectOf(std::string_view text, size_t size) {
  JsonEnd end;
  size_t taken = 0;
  while (taken < text.size() && end.state() != JsonEnd::State::kEnded) {
    taken += end.Feed(text.substr(taken, size));
    if (end.state() == JsonEnd::State::kNoObject) {
      return "none";
    }
  }
  return end.state() == JsonEnd::State::kEnded ? std::string(text.substr(0, taken)) : "no end";
}

TEST(JsonEnd, IsWhereTheFirstBraceCloses) {
  for (const std::string object : {
           R"({})",
           R"({"a":{"b":[1,{}]},"c":[]})",
           R"({"text":"}]\"}\\"})",
           R"({"\\":"\\\\\"{"})",
       }) {
    for (const size_t portion : {1, 2, 3, 100}) {
      EXPECT_EQ(ObjectOf(object + R"({"next":1})", portion), object);
      EXPECT_EQ(ObjectOf(" \n" + object, portion), " \n" + object);
      EXPECT_EQ(ObjectOf(object.substr(0, object.size() - 1), portion), "no end");
    }
  }
}

TEST(JsonEnd, IsNotThereWhereNoObjectBegins) {
  EXPECT_EQ(ObjectOf("7", 1), "none");
  EXPECT_EQ(ObjectOf("HTTP/1.1 400", 4), "none");
  EXPECT_EQ(ObjectOf("[]", 2), "none");
}

TEST(JsonEnd, TakesNothingMoreBehindIt) {
  JsonEnd end;
  EXPECT_EQ(end.Feed("{}{}"), 2U);
  EXPECT_EQ(end.Feed("{}"), 0U);
}

}  // namespace
}  // namespace gantry
