// SPDX-License-Identifier: Apache-2.0
//
// The format of small programs beside the library's.
#include "core/sdk/short_format.h"

#include <cstdint>
#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace gantry {
namespace {

template <class... Args>
void ExpectSame(const char* format, const Args&... args) {
  EXPECT_EQ(ShortFormat(format, std::make_format_args(args...)),
            std::vformat(format, std::make_format_args(args...)))
      << format;
}

TEST(ShortFormat, WritesTextAsTheLibraryDoes) {
  ExpectSame("");
  ExpectSame("no field");
  ExpectSame("{{}} {{{}}}", 1);
  ExpectSame("open '{}': {}", "file", std::string("none"));
  ExpectSame("{1} {0} {1}", std::string_view("a"), 'b');
  ExpectSame("{} {}", true, false);
  ExpectSame("{}", static_cast<const void*>(nullptr));
  ExpectSame("{}", std::string(100'000, 'x'));
  ExpectSame("{0}{1}{2}{3}{4}{5}{6}{7}{8}{9}{10}", 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10);
}

TEST(ShortFormat, WritesNumbersAsTheLibraryDoes) {
  for (const char* format : {"{}", "{:d}", "{:x}", "{:#x}", "{:X}", "{:#X}", "{:o}", "{:#o}",
                             "{:06}", "{:016x}", "{:02x}", "{:04o}", "{:#010x}", "{:6}"}) {
    ExpectSame(format, 0);
    ExpectSame(format, 255);
    ExpectSame(format, -255);
    ExpectSame(format, 0xabcdefU);
    ExpectSame(format, std::numeric_limits<int64_t>::min());
    ExpectSame(format, std::numeric_limits<int64_t>::max());
    ExpectSame(format, std::numeric_limits<uint64_t>::max());
  }
  ExpectSame("{}", 1.5);
}

/// Nothing of this may end the first process of a machine.
TEST(ShortFormat, ShowsWhatItDoesNotKnow) {
  const int number = 7;
  const std::string text = "a";
  EXPECT_EQ(ShortFormat("{:>6}|{:<12}", std::make_format_args(number, text)), "7|a");
  EXPECT_EQ(ShortFormat("{} {}", std::make_format_args(number)), "7 {}");
  EXPECT_EQ(ShortFormat("{", std::make_format_args(number)), "7");
  EXPECT_EQ(ShortFormat("{:", std::make_format_args(number)), "7");
  EXPECT_EQ(ShortFormat("}", std::make_format_args(number)), "}");
}

}  // namespace
}  // namespace gantry
