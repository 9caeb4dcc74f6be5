// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include <gtest/gtest.h>

#include <gantry/protowire.h>

namespace gantry {
namespace {

TEST(ProtoWire, ReadsWhatItWrites) {
  ProtoWriter out;
  out.Varint(1, 300);
  out.Int(2, -1);
  out.Bytes(3, "text");
  out.Text(4, "");
  out.Double(5, 1.5);
  const std::string bytes = out.Take();
  ProtoReader in(bytes);
  ASSERT_TRUE(in.Next());
  EXPECT_EQ(in.field(), 1U);
  EXPECT_EQ(in.number(), 300U);
  EXPECT_FALSE(in.is_bytes());
  ASSERT_TRUE(in.Next());
  EXPECT_EQ(in.integer(), -1);
  ASSERT_TRUE(in.Next());
  EXPECT_EQ(in.text(), "text");
  EXPECT_TRUE(in.is_bytes());
  ASSERT_TRUE(in.Next());
  EXPECT_EQ(in.field(), 5U) << "empty text is left out";
  EXPECT_FALSE(in.Next());
  EXPECT_TRUE(in.ok());
}

TEST(ProtoWire, LargestNumber) {
  ProtoWriter out;
  out.Varint(1, std::numeric_limits<uint64_t>::max());
  ProtoReader in(out.str());
  ASSERT_TRUE(in.Next());
  EXPECT_EQ(in.number(), std::numeric_limits<uint64_t>::max());
}

TEST(ProtoWire, NeverReadsPastTheEnd) {
  // A length beyond the end, a number without an end, a group, field 0.
  for (const std::string_view bad : {"\x0a\x05"
                                     "ab",
                                     "\x08\xff\xff", "\x0b", "\x02\x00", "\x09\x01"}) {
    ProtoReader in(bad);
    while (in.Next()) {
    }
    EXPECT_FALSE(in.ok()) << testing::PrintToString(std::string(bad));
  }
}

TEST(ProtoWire, EveryCutOffMessageIsMalformedOrShorter) {
  ProtoWriter out;
  out.Varint(1, 300);
  out.Bytes(2, "abc");
  const std::string whole = out.Take();
  for (size_t size = 0; size < whole.size(); ++size) {
    ProtoReader in(std::string_view(whole).substr(0, size));
    int fields = 0;
    while (in.Next()) {
      ++fields;
    }
    EXPECT_EQ(in.ok(), size == 0 || size == 3) << size;
    EXPECT_LT(fields, 2) << size;
  }
}

}  // namespace
}  // namespace gantry
