// SPDX-License-Identifier: Apache-2.0
#include "core/log/log.h"

#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::SizeIs;

class LogTest : public testing::Test {
 protected:
  LogTest() {
    log::SetLevel(log::Level::kInfo);
    log::SetSinkForTest([this](std::string_view line) { lines_.emplace_back(line); });
  }

  ~LogTest() override {
    log::SetSinkForTest({});
    log::SetLevel(log::Level::kInfo);
  }

  std::vector<std::string> lines_;
};

TEST_F(LogTest, WritesOneLineWithTimeLevelMessageAndFields) {
  LogInfo({{"ns", "k8s.io"}, {"id", ""}, {"address", "/run/x y"}}, "created '{}' in {} ms", "a1",
          7);
  ASSERT_THAT(lines_, SizeIs(1));
  EXPECT_THAT(lines_[0], MatchesRegex("time=[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"
                                      "\\.[0-9]{6}Z level=info msg=\"created 'a1' in 7 ms\" "
                                      "ns=k8s.io address=\"/run/x y\"\n"));
}

TEST_F(LogTest, LevelsBelowTheCurrentOneAreNotWritten) {
  LogDebug("no");
  LogWarning("one");
  log::SetLevel(log::Level::kError);
  LogWarning("no");
  LogError("two");
  log::SetLevel(log::Level::kDebug);
  LogDebug("three");
  ASSERT_THAT(lines_, SizeIs(3));
  EXPECT_THAT(lines_[0], HasSubstr("level=warning msg=one"));
  EXPECT_THAT(lines_[1], HasSubstr("level=error msg=two"));
  EXPECT_THAT(lines_[2], HasSubstr("level=debug msg=three"));
}

TEST_F(LogTest, InputCannotForgeALine) {
  LogInfo({{"id", "a=\"\n"}}, "{}", "x\" level=error\ntime=0 \\ \x01\x7f");
  ASSERT_THAT(lines_, SizeIs(1));
  EXPECT_THAT(lines_[0], EndsWith("msg=\"x\\\" level=error\\ntime=0 \\\\ \\x01\\x7f\" "
                                  "id=\"a=\\\"\\n\"\n"));
}

TEST_F(LogTest, LinesAreBounded) {
  const std::string text(100000, 'x');
  const std::string controls(100000, '\x01');
  LogInfo({{"a", text}, {"b", controls}, {"c", text}}, "{}", text);
  LogInfo({{"a", controls}}, "{}", controls);
  ASSERT_THAT(lines_, SizeIs(2));
  for (const std::string& line : lines_) {
    EXPECT_LE(line.size(), 4096U);
    EXPECT_THAT(line, HasSubstr("...\" a="));
    EXPECT_EQ(line.find('\n'), line.size() - 1);
  }
}

TEST_F(LogTest, AFloodFromOneCallSiteIsHeldBack) {
  for (int i = 0; i < 1000; ++i) {
    LogInfo("flood {}", i);
  }
  EXPECT_THAT(lines_, SizeIs(20));
  LogInfo("another site");
  EXPECT_THAT(lines_, SizeIs(21));
  EXPECT_THAT(lines_[20], Not(HasSubstr("suppressed")));
}

TEST_F(LogTest, ThreadsDoNotMixTheirLines) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int line = 0; line < 40; ++line) {
        LogError("from a thread");
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  ASSERT_THAT(lines_, SizeIs(160));
  EXPECT_THAT(lines_, testing::Each(EndsWith("msg=\"from a thread\"\n")));
}

TEST(LogLevelTest, Names) {
  EXPECT_EQ(*log::ParseLevel("debug"), log::Level::kDebug);
  EXPECT_EQ(*log::ParseLevel("warn"), log::Level::kWarning);
  EXPECT_EQ(*log::ParseLevel("warning"), log::Level::kWarning);
  EXPECT_EQ(log::ParseLevel("loud").error().code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace gantry
