// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/protocol/frames.h"

#include <string>

#include <gtest/gtest.h>

#include "plugins/vmm/protocol/envelope.h"
#include "plugins/vmm/protocol/ids.h"

namespace gantry::vmm::protocol {
namespace {

TEST(Frames, ComeInAnyPortions) {
  const std::string bytes = Framed("one") + Framed(std::string(300, 'x')) + Framed("three");
  for (size_t portion = 1; portion < bytes.size(); ++portion) {
    FrameReader reader(1024);
    std::string seen;
    for (size_t at = 0; at < bytes.size(); at += portion) {
      reader.Feed(std::string_view(bytes).substr(at, portion));
      while (true) {
        auto frame = reader.Next();
        ASSERT_TRUE(frame);
        if (!*frame) {
          break;
        }
        seen += **frame + "|";
      }
    }
    EXPECT_EQ(seen, "one|" + std::string(300, 'x') + "|three|") << "in portions of " << portion;
  }
}

TEST(Frames, HaveTheHighestByteOfTheirLengthFirstAsTheCoreReadsThem) {
  EXPECT_EQ(Framed("abc"), std::string("\0\0\0\3abc", 7));
  EXPECT_EQ(LengthIn(std::string("\1\2\3\4", 4)), 0x01020304U);
}

TEST(Frames, OfTooManyBytesAreRefusedByTheirLengthAlone) {
  FrameReader reader(1024);
  reader.Feed(std::string("\x7f\xff\xff\xff", 4));
  const auto frame = reader.Next();
  ASSERT_FALSE(frame);
  EXPECT_EQ(frame.error().code, Code::kResourceExhausted);
  EXPECT_EQ(frame.error().message, "read a frame: it has 2147483647 bytes, at most 1024");
}

TEST(Frames, AreNotEmptyOnTheControlConnection) {
  FrameReader reader(1024);
  reader.Feed(Framed(""));
  EXPECT_EQ(reader.Next().error().code, Code::kInvalidArgument);
}

TEST(Ids, AreNamesThatNoPathCanMisread) {
  for (const char* id : {"a", "A-b_c.9", "0123456789abcdef"}) {
    EXPECT_TRUE(IsId(id)) << id;
  }
  for (const char* id : {"", ".", "..", ".a", "a/b", "a b", "a\n", "\xc3\xa4"}) {
    EXPECT_FALSE(IsId(id)) << id;
  }
  EXPECT_TRUE(IsId(std::string(128, 'a')));
  EXPECT_FALSE(IsId(std::string(129, 'a')));
}

TEST(Failures, OfTheWireAreErrorsWhateverTheySay) {
  EXPECT_EQ(ToError({.code = 5, .sys_errno = 2, .message = "no\nway"}).message, "no way");
  EXPECT_EQ(ToError({.code = 5, .sys_errno = 2, .message = "x"}).code, Code::kNotFound);
  for (const int32_t code : {0, -1, 17, 1 << 30}) {
    EXPECT_EQ(ToError({.code = code, .sys_errno = 0, .message = "x"}).code, Code::kInternal);
  }
  EXPECT_EQ(ToError({.code = 5, .sys_errno = -7, .message = "x"}).sys_errno, 0);
  EXPECT_FALSE(ToError({}).message.empty());
  EXPECT_EQ(ToError({.code = 5, .sys_errno = 0, .message = std::string(9000, 'x')}).message.size(),
            4096U);
}

}  // namespace
}  // namespace gantry::vmm::protocol
