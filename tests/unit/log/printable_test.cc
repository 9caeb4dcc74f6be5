// SPDX-License-Identifier: Apache-2.0
#include "core/log/printable.h"

#include <gtest/gtest.h>

namespace gantry::log {
namespace {

TEST(Printable, LeavesTextAsItIs) {
  EXPECT_EQ(Printable(""), "");
  EXPECT_EQ(Printable("a \"quoted\" \\ word"), "a \"quoted\" \\ word");
  EXPECT_EQ(Printable("\u00e4\u20ac\U0001f600\u00a0"), "\u00e4\u20ac\U0001f600\u00a0");
}

TEST(Printable, EscapesControls) {
  EXPECT_EQ(Printable("a\nb\tc\r\x1b[31m\x7f"), "a\\nb\\tc\\x0d\\x1b[31m\\x7f");
  EXPECT_EQ(Printable(std::string("\0", 1)), "\\x00");
}

TEST(Printable, EscapesThoseOfLatin1InBothForms) {
  EXPECT_EQ(Printable("\x9b"
                      "31m"),
            "\\x9b31m")
      << "a terminal's CSI in one byte";
  EXPECT_EQ(Printable("\u0085"), "\\xc2\\x85");
  EXPECT_EQ(Printable("\u009b"), "\\xc2\\x9b");
}

TEST(Printable, EscapesWhatIsNoUtf8) {
  EXPECT_EQ(Printable("\xff"), "\\xff");
  EXPECT_EQ(Printable("\xc3"), "\\xc3") << "cut off";
  EXPECT_EQ(Printable("\xc3z"), "\\xc3z");
  EXPECT_EQ(Printable("\xc0\x8a"), "\\xc0\\x8a") << "a newline in two bytes";
  EXPECT_EQ(Printable("\xe0\x80\x8a"), "\\xe0\\x80\\x8a");
  EXPECT_EQ(Printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(Printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "beyond the last one";
}

TEST(Printable, EndsAtTheLimit) {
  std::string out = "x=";
  AppendPrintable(out, std::string(1000, '\x01'), 20);
  EXPECT_GE(out.size(), 20U);
  EXPECT_LE(out.size(), 24U);
}

}  // namespace
}  // namespace gantry::log
