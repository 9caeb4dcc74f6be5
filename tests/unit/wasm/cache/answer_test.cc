// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/cache/answer.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::wasm {
namespace {

using testing::HasSubstr;

TEST(CompilerAnswer, IsAKindOrAnError) {
  EXPECT_EQ(*ParseAnswer("{\"kind\":\"module\"}\n"), Kind::kModule);
  EXPECT_EQ(*ParseAnswer(R"({"kind":"command"})"), Kind::kCommand);
  EXPECT_EQ(*ParseAnswer(R"({"kind":"proxy"})"), Kind::kProxy);
  const auto error = ParseAnswer(R"({"error":{"code":"INVALID_ARGUMENT","message":"at\u0007 7"}})");
  EXPECT_EQ(error.error().code, Code::kInvalidArgument);
  EXPECT_EQ(error.error().message, "compile the module: at? 7");
}

TEST(CompilerAnswer, OfAnotherKindIsNone) {
  for (const char* text :
       {"", "\n", "null", "[]", "{}", "{", "\xff", R"({"kind":7})", R"({"kind":"x"})",
        R"({"error":7})", R"({"error":{}})", R"({"error":{"code":7,"message":"m"}})",
        R"({"error":{"code":"INTERNAL","message":{}}})",
        R"({"error":{"code":"UNAVAILABLE","message":"it may not say that"}})"}) {
    const auto parsed = ParseAnswer(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, Code::kInternal) << text;
    EXPECT_THAT(parsed.error().message, HasSubstr("the compiler answers '")) << text;
  }
  EXPECT_FALSE(ParseAnswer(std::string(1 << 20, '[')));
  EXPECT_LT(ParseAnswer(std::string(1 << 20, 'x')).error().message.size(), 1000U);
}

TEST(CompilerLine, IsOneWord) {
  EXPECT_TRUE(IsCompilerLine("wasmtime-48.0.8-x\n"));
  for (const char* text :
       {"", "\n", "no-end", "two words\n", "two\nlines\n", "\x01\n", "\xc3\xa9\n"}) {
    EXPECT_FALSE(IsCompilerLine(text)) << text;
  }
}

}  // namespace
}  // namespace gantry::wasm
