// SPDX-License-Identifier: Apache-2.0
#include "core/io/uri.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::io {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(ParseStdio, NothingIsNone) { EXPECT_EQ(ParseStdio({}).value().kind, StdioKind::kNone); }

TEST(ParseStdio, PlainPathsAreFifos) {
  const StdioUri uri = ParseStdio({"/a%20in", "/out", "/err", false}).value();
  EXPECT_EQ(uri.kind, StdioKind::kFifo);
  EXPECT_EQ(uri.in, "/a%20in");
  EXPECT_EQ(uri.out, "/out");
  EXPECT_EQ(uri.err, "/err");
}

TEST(ParseStdio, ATerminalHasNoStderr) {
  EXPECT_EQ(ParseStdio({"/in", "/out", "/err", true}).value().err, "");
}

TEST(ParseStdio, StderrAloneIsAFifoToo) {
  EXPECT_EQ(ParseStdio({"", "", "/err", false}).value().kind, StdioKind::kFifo);
}

TEST(ParseStdio, FifoSchemeIsDecoded) {
  EXPECT_EQ(ParseStdio({"", "fifo:///run/a%20b", "", false}).value().out, "/run/a b");
}

TEST(ParseStdio, FileHasAPath) {
  const StdioUri uri = ParseStdio({"", "file:///var/log/a.log", "file:///x", false}).value();
  EXPECT_EQ(uri.kind, StdioKind::kFile);
  EXPECT_EQ(uri.path, "/var/log/a.log");
}

TEST(ParseStdio, BinaryHasAProgramAndASortedQuery) {
  const StdioUri uri =
      ParseStdio({"", "binary:///usr/bin/log?z=1&a=b%26c+d&z=2&empty", "", false}).value();
  EXPECT_EQ(uri.kind, StdioKind::kBinary);
  EXPECT_EQ(uri.path, "/usr/bin/log");
  EXPECT_THAT(uri.query, ElementsAre(Pair("a", "b&c d"), Pair("empty", ""), Pair("z", "1")));
}

TEST(ParseStdio, BinaryV2IsItsOwnKind) {
  EXPECT_EQ(ParseStdio({"", "binary-v2:///log", "", false}).value().kind, StdioKind::kBinaryV2);
}

TEST(ParseStdio, StreamsHaveIds) {
  const std::string address = "ttrpc+unix:///run/s.sock?streaming_id=";
  const StdioUri uri =
      ParseStdio({"", address + "c1-stdout", address + "c1-stderr", false}).value();
  EXPECT_EQ(uri.kind, StdioKind::kStreaming);
  EXPECT_EQ(uri.in, "");
  EXPECT_EQ(uri.out, "c1-stdout");
  EXPECT_EQ(uri.err, "c1-stderr");
}

TEST(ParseStdio, RefusesWhatItDoesNotKnow) {
  for (const std::string text :
       {"npipe:////./pipe/x", "relative/path", "file://relative", "binary://", "file:///a%2",
        "file:///a%zz", "ttrpc+unix:///s", "binary:///x?a=%00"}) {
    const auto uri = ParseStdio({"", text, "", false});
    ASSERT_FALSE(uri.has_value()) << text;
    EXPECT_EQ(uri.error().code, Code::kInvalidArgument) << text;
  }
  EXPECT_THAT(ParseStdio({"", "npipe:///x", "", false}).error().message,
              HasSubstr("unknown STDIO scheme 'npipe'"));
  EXPECT_FALSE(ParseStdio({"", "/" + std::string(5000, 'x'), "", false}).has_value());
  EXPECT_FALSE(ParseStdio({"file:///in", "/out", "", false}).has_value());
}

}  // namespace
}  // namespace gantry::io
