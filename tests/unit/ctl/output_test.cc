// SPDX-License-Identifier: Apache-2.0
#include "core/ctl/output.h"

#include <gtest/gtest.h>

namespace gantry::ctl {
namespace {

TEST(Table, AlignsItsColumnsAndKeepsControlCharactersOut) {
  Table table({"ID", "STATE"});
  table.Add({"a-long-id", "run\x1b[0m\n"});
  table.Add({"b", ""});
  EXPECT_EQ(table.str(),
            "ID         STATE\n"
            "a-long-id  run?[0m?\n"
            "b          -\n");
}

TEST(JsonWriter, NestsAndEscapes) {
  JsonWriter json;
  json.Object().Member("a\"", "x\n").Member("n", 5).Member("b", true).Key("list").Array();
  json.Value("one").Object().End().End().Key("empty").Array().End().End();
  EXPECT_EQ(json.Take(),
            "{\n  \"a\\\"\": \"x\\n\",\n  \"n\": 5,\n  \"b\": true,\n  \"list\": [\n    \"one\",\n"
            "    {}\n  ],\n  \"empty\": []\n}\n");
}

TEST(BytesText, HasOneUnit) {
  EXPECT_EQ(BytesText(0), "");
  EXPECT_EQ(BytesText(1023), "1023 B");
  EXPECT_EQ(BytesText(1536), "1.5 KiB");
  EXPECT_EQ(BytesText(uint64_t{3} << 40), "3.0 TiB");
  EXPECT_EQ(BytesText(UINT64_MAX), "16777216.0 TiB");
}

TEST(AgeText, HasOneUnit) {
  constexpr int64_t kSecond = 1'000'000'000;
  EXPECT_EQ(AgeText(0, kSecond), "");
  EXPECT_EQ(AgeText(kSecond, 6 * kSecond), "5s");
  EXPECT_EQ(AgeText(kSecond, 601 * kSecond), "10m");
  EXPECT_EQ(AgeText(kSecond, 10'801 * kSecond), "3h");
  EXPECT_EQ(AgeText(kSecond, 864'001 * kSecond), "10d");
  EXPECT_EQ(AgeText(6 * kSecond, kSecond), "0s");
}

TEST(TimeText, IsRfc3339) {
  EXPECT_EQ(TimeText(0), "");
  EXPECT_EQ(TimeText(1'700'000'000'123'456'789), "2023-11-14T22:13:20.123Z");
}

}  // namespace
}  // namespace gantry::ctl
