// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/fetch/answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/wasm/fetch/fake_store.h"

namespace gantry::wasm::fetch {
namespace {

using ::testing::HasSubstr;

TEST(WasmFetchAnswer, IsReadAsItWasWritten) {
  const Blob module{"application/wasm", DigestOf("m"), 5};
  const ImageAnswer written{
      {"wasip1", "wasm"}, {{"application/x", DigestOf("t"), 9}, module}, module};
  const std::string text = AnswerText(written);
  EXPECT_EQ(text, R"({"platform":{"os":"wasip1","architecture":"wasm"},"layers":[)"
                  R"({"mediaType":"application/x","digest":")" +
                      DigestOf("t") + R"(","size":9},)" +
                      R"({"mediaType":"application/wasm","digest":")" + DigestOf("m") +
                      R"(","size":5}],"module":{"mediaType":"application/wasm","digest":")" +
                      DigestOf("m") + "\",\"size\":5}}\n");
  const auto read = ReadAnswer(text);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->platform, written.platform);
  EXPECT_EQ(read->layers.size(), 2U);
  ASSERT_TRUE(read->module);
  EXPECT_EQ(read->module->digest, module.digest);
  EXPECT_EQ(read->module->size, 5U);
}

TEST(WasmFetchAnswer, WithoutAModuleIsReadAsItWasWritten) {
  const auto read = ReadAnswer(AnswerText(ImageAnswer{{"wasi", "wasm"}, {}, {}}));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_FALSE(read->module);
}

TEST(WasmFetchAnswer, OfAnErrorIsThatError) {
  const auto read = ReadAnswer(
      AnswerText(std::unexpected(Error{Code::kUnavailable, 0, "ask \"containerd\"\n", ""})));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Code::kUnavailable);
  EXPECT_EQ(read.error().message, "ask \"containerd\"\n");
}

TEST(WasmFetchAnswer, IsNeverLongerThanIsRead) {
  const ImageAnswer answer{
      {std::string(5000, '\1'), std::string(5000, '\1')},
      std::vector<Blob>(kMaxLayers, Blob{std::string(5000, '\1'), DigestOf("x"), UINT64_MAX}),
      Blob{std::string(5000, '\1'), DigestOf("x"), UINT64_MAX}};
  EXPECT_LE(AnswerText(answer).size(), kMaxAnswerBytes);
  EXPECT_LE(AnswerText(Fail(Code::kInternal, "{}", std::string(1 << 21, '\1'))).size(),
            kMaxAnswerBytes);
}

TEST(WasmFetchAnswer, ThatIsNoneIsOurOwnFault) {
  for (const char* text :
       {"", "\n", "[]", "{\"error\":7}", "{\"error\":{}}", "{\"error\":{\"code\":\"OK\"}}",
        "{\"platform\":{\"os\":5}}", "{\"module\":{\"size\":-1}}", "{\"layers\":{}}"}) {
    const auto read = ReadAnswer(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, Code::kInternal) << text;
    EXPECT_THAT(read.error().message, HasSubstr("gantry-wasm-fetch")) << text;
  }
}

}  // namespace
}  // namespace gantry::wasm::fetch
