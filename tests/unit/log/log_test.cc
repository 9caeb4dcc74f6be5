// SPDX-License-Identifier: Apache-2.0
#include "core/log/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>
#include <gantry/unique_fd.h>

#include "core/log/rotation.h"
#include "core/os/fs.h"

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

TEST_F(LogTest, InputCannotSteerATerminal) {
  LogInfo({{"id",
            "\xc2\x9b"
            "31m"}},
          "{}",
          "\x9b"
          "2J");
  ASSERT_THAT(lines_, SizeIs(1));
  EXPECT_THAT(lines_[0], EndsWith("msg=\"\\x9b2J\" id=\"\\xc2\\x9b31m\"\n"));
}

TEST_F(LogTest, AFloodOfOneSandboxDoesNotHideAnother) {
  for (int i = 0; i < 10'000; ++i) {
    for (const char* id : {"flood", i == 9'999 ? "quiet" : "flood"}) {
      LogWarning({{"backend", "x"}, {"id", id}}, "it cannot be killed");
    }
  }
  EXPECT_THAT(lines_, testing::Contains(HasSubstr("id=quiet")));
  EXPECT_LE(lines_.size(), 100U);
}

TEST_F(LogTest, TheFileIsBoundedWhileItIsWritten) {
  constexpr off_t kMaxBytes = 64 << 10;
  const auto dir = os::TempDir::Create();
  const std::string path = dir->path() + "/x.log";
  const UniqueFd before(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  ASSERT_EQ(dup2(file.get(), STDERR_FILENO), STDERR_FILENO);
  log::SetSinkForTest({});
  log::KeepBounded(path, kMaxBytes);
  for (int i = 0; i < 4000; ++i) {
    LogError({{"id", std::to_string(i % 100)}}, "line {} {}", i, std::string(100, 'x'));
  }
  dup2(before.get(), STDERR_FILENO);
  log::KeepBounded("", 0);
  const std::string now = ReadFile(path, 1 << 20).value_or("");
  const std::string old = ReadFile(path + ".1", 1 << 20).value_or("");
  EXPECT_THAT(now + old, HasSubstr("line 3999 "));
  for (const std::string& text : {now, old}) {
    EXPECT_GT(text.size(), 0U);
    EXPECT_LE(text.size(), static_cast<size_t>(kMaxBytes + kMaxBytes / 4));
    EXPECT_TRUE(text.starts_with("time=") && text.ends_with("\n")) << "no line is cut";
  }
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
