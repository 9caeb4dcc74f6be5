// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/cache/entry.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::wasm {
namespace {

using testing::HasSubstr;

EntryHeader Header() {
  return {.id = {.module = Sha256Of("m"), .compiler = Sha256Of("c")},
          .kind = Kind::kProxy,
          .made_at = 1'800'000'000,
          .length = 77,
          .hash = Sha256Of("h")};
}

std::string ErrorOf(const std::string& bytes) {
  const auto header = EntryHeader::Decode(bytes);
  return header ? "no error" : header.error().message;
}

TEST(Sha256Test, IsThatOfTheStandard) {
  EXPECT_EQ(HexOf(Sha256Of("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(EntryHeaderTest, IsReadAsItWasWritten) {
  const std::string bytes = Header().Encode();
  EXPECT_EQ(bytes.size(), EntryHeader::kSize);
  const auto read = EntryHeader::Decode(bytes + "what follows");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, Header());
  EntryHeader failure = Header();
  failure.failure = Code::kResourceExhausted;
  failure.kind = Kind::kModule;
  failure.kept_until = 5;
  EXPECT_EQ(*EntryHeader::Decode(failure.Encode()), failure);
}

TEST(EntryHeaderTest, IsNotGuessedAt) {
  const std::string good = Header().Encode();
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_THAT(ErrorOf(good.substr(0, size)), HasSubstr("cut off"));
  }
  const auto with = [&](size_t at, char byte) {
    std::string bytes = good;
    bytes[at] = byte;
    return ErrorOf(bytes);
  };
  EXPECT_THAT(with(0, 'x'), HasSubstr("no file of the cache"));
  EXPECT_THAT(with(8, 2), HasSubstr("format 2, not 1"));
  EXPECT_THAT(with(12, 3), HasSubstr("unknown kind 3"));
  EXPECT_THAT(with(12, '\xff'), HasSubstr("no error of code 0 is kept"));
  EXPECT_THAT(with(16, 3), HasSubstr("unknown kind"));
  EXPECT_THAT(with(20, 1), HasSubstr("bits that mean nothing"));
  EXPECT_THAT(with(47, '\x7f'), HasSubstr("it says that it has"));
  EXPECT_THAT(with(40, 0), HasSubstr("it says that it has 0 bytes"));
}

TEST(EntryHeaderTest, OfAnErrorHasAShortText) {
  EntryHeader failure = Header();
  failure.failure = Code::kInvalidArgument;
  failure.length = EntryHeader::kMaxText;
  EXPECT_EQ(ErrorOf(failure.Encode()), "no error");
  failure.length = EntryHeader::kMaxText + 1;
  EXPECT_THAT(ErrorOf(failure.Encode()), HasSubstr("from 1 to 4096"));
}

TEST(EntryIdTest, NamesModuleAndCompiler) {
  const EntryId id = Header().id;
  EXPECT_EQ(id.Key().size(), 64U);
  EXPECT_NE(id.Key(), (EntryId{.module = id.compiler, .compiler = id.module}.Key()));
  EXPECT_NE(id.Key(), (EntryId{.module = id.module, .compiler = id.module}.Key()));
}

}  // namespace
}  // namespace gantry::wasm
