// SPDX-License-Identifier: Apache-2.0
#include "core/trace/span_context.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace gantry::trace {
namespace {

constexpr TraceId kTrace{0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6,
                         0xa3, 0xce, 0x92, 0x9d, 0x0e, 0x0e, 0x47, 0x36};
constexpr SpanId kSpan{0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7};
// That of the specification.
constexpr char kExample[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(Traceparent, IsTakenApart) {
  const auto context = ParseTraceparent(kExample, "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7");
  ASSERT_TRUE(context);
  EXPECT_EQ(context->trace, kTrace);
  EXPECT_EQ(context->span, kSpan);
  EXPECT_TRUE(context->sampled);
  EXPECT_EQ(context->state, "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7");
}

TEST(Traceparent, SaysWhetherTheTraceIsKept) {
  std::string text = kExample;
  for (const auto& [flags, sampled] :
       {std::pair("00", false), std::pair("01", true), std::pair("02", false),
        std::pair("03", true), std::pair("ff", true)}) {
    text.replace(text.size() - 2, 2, flags);
    ASSERT_TRUE(ParseTraceparent(text, "")) << flags;
    EXPECT_EQ(ParseTraceparent(text, "")->sampled, sampled) << flags;
  }
}

TEST(Traceparent, OfALaterVersionIsReadAsFarAsItIsKnown) {
  std::string later = kExample;
  later.replace(0, 2, "cc");
  ASSERT_TRUE(ParseTraceparent(later, ""));
  ASSERT_TRUE(ParseTraceparent(later + "-what-the-future-will-be", ""));
  EXPECT_EQ(ParseTraceparent(later + "-x", "")->trace, kTrace);
  EXPECT_FALSE(ParseTraceparent(later + ".x", ""));
  EXPECT_FALSE(ParseTraceparent(later + "-" + std::string(kMaxTraceparent, 'x'), ""));
}

TEST(Traceparent, IsNoneThatHasAnythingElse) {
  for (const std::string text :
       {"", "00", "x", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 ",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902bg-01",
        "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7_01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "0x-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-x1"}) {
    EXPECT_FALSE(ParseTraceparent(text, "")) << text;
  }
}

TEST(Tracestate, IsLeftOutWhereItIsTooLongOrNoText) {
  for (const std::string& state : {std::string(kMaxTracestate + 1, 'x'), std::string("a=\n"),
                                   std::string("a=\xff"), std::string("a=\0b", 4)}) {
    const auto context = ParseTraceparent(kExample, state);
    ASSERT_TRUE(context);
    EXPECT_EQ(context->state, "");
  }
  EXPECT_EQ(ParseTraceparent(kExample, std::string(kMaxTracestate, 'x'))->state.size(),
            kMaxTracestate);
}

}  // namespace
}  // namespace gantry::trace
