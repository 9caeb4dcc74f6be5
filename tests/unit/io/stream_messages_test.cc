// SPDX-License-Identifier: Apache-2.0
//
// What is said on a stream, to the byte, and what is made of what nobody should say.
#include "core/io/stream_messages.h"

#include <gtest/gtest.h>

#include <gantry/protowire.h>

#include "tests/unit/io/stream_client.h"

namespace gantry::io {
namespace {

using Kind = StreamHead::Kind;

std::string Frame(uint32_t stream, uint8_t type, uint8_t flags, const std::string& payload) {
  std::string frame;
  for (const uint32_t word : {static_cast<uint32_t>(payload.size()), stream}) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      frame += static_cast<char>(word >> shift);
    }
  }
  frame += static_cast<char>(type);
  frame += static_cast<char>(flags);
  return frame + payload;
}

std::string AnyOf(const std::string& type, const std::string& value) {
  ProtoWriter any;
  any.Bytes(1, type);
  any.Bytes(2, value);
  return any.Take();
}

TEST(StreamMessages, DataIsWhatContainerdWrites) {
  for (const size_t bytes : {size_t{1}, size_t{80}, size_t{127}, size_t{128}, size_t{16300},
                             size_t{16383}, size_t{16384}, kStreamDataBytes}) {
    const std::string data(bytes, 'x');
    EXPECT_EQ(StreamDataHead(1, bytes) + data, DataFrame(data)) << bytes;
  }
}

TEST(StreamMessages, DataIsReadFromItsFirstBytes) {
  for (const size_t bytes : {size_t{1}, size_t{127}, size_t{128}, kStreamDataBytes}) {
    const std::string frame = DataFrame(std::string(bytes, 'x'));
    const std::string head = StreamDataHead(1, bytes);
    for (size_t seen = 0; seen < head.size(); ++seen) {
      EXPECT_EQ(ReadStreamHead(1, frame.substr(0, seen)).kind, Kind::kPart) << seen;
    }
    const StreamHead read = ReadStreamHead(1, frame.substr(0, kStreamHeadBytes));
    EXPECT_EQ(read.kind, Kind::kData);
    EXPECT_EQ(read.bytes, head.size());
    EXPECT_EQ(read.value, bytes);
    EXPECT_FALSE(read.last);
  }
}

TEST(StreamMessages, WindowsAndEndsAreRead) {
  const std::string window = StreamWindowFrame(1, 65536);
  EXPECT_EQ(window, Frame(1, 3, 0,
                          AnyOf("containerd.types.transfer.WindowUpdate",
                                std::string("\x08\x80\x80\x04", 4))));
  StreamHead head = ReadStreamHead(1, window + window);
  EXPECT_EQ(head.kind, Kind::kWindow);
  EXPECT_EQ(head.bytes, window.size());
  EXPECT_EQ(head.value, 65536U);
  EXPECT_EQ(ReadStreamHead(1, window.substr(0, window.size() - 1)).kind, Kind::kPart);
  head = ReadStreamHead(1, StreamEndFrame(1) + window);
  EXPECT_EQ(head.kind, Kind::kEnd);
  EXPECT_EQ(head.bytes, 10U);
}

TEST(StreamMessages, WhatIsNotMeantForUsIsSkipped) {
  const std::string others[] = {
      Frame(1, 3, 0, AnyOf("google.protobuf.Empty", "")),
      Frame(1, 77, 0, "whatever"),
      Frame(9, 77, 0, "whatever"),
      Frame(1, 3, 4, ""),
      Frame(1, 3, 0, ""),
  };
  for (const std::string& frame : others) {
    const StreamHead head = ReadStreamHead(1, frame);
    EXPECT_EQ(head.kind, Kind::kOther);
    EXPECT_EQ(head.bytes, frame.size());
  }
}

TEST(StreamMessages, WhatIsNoneIsBad) {
  const std::string bad[] = {
      Frame(3, 3, 0, AnyOf("containerd.types.transfer.WindowUpdate", "")),
      Frame(1, 3, 0, std::string("\x0a\xff\xff\xff", 4)),
      std::string("\xff\xff\xff\xff\0\0\0\1\3\0", 10),
      Frame(1, 3, 0, AnyOf("google.protobuf.Empty", std::string(1000, 'x'))),
      Frame(1, 3, 0, AnyOf("containerd.types.transfer.WindowUpdate", "\x08\xff\xff\xff\xff\x0f")),
      // -1, in ten bytes.
      Frame(1, 3, 0,
            AnyOf("containerd.types.transfer.WindowUpdate",
                  "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")),
  };
  for (const std::string& frame : bad) {
    EXPECT_EQ(ReadStreamHead(1, frame.substr(0, kStreamHeadBytes)).kind, Kind::kBad);
  }
}

}  // namespace
}  // namespace gantry::io
