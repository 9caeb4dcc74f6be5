// SPDX-License-Identifier: Apache-2.0
//
// Tests that fail once, or always, in each way that a test can: what suites_test.cc gives to
// ./run test. What has failed before is a file in the folder $SOMETIMES.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

namespace {

using Sometimes = ::testing::Test;

std::string Path(const std::string& name) {
  const char* const folder = std::getenv("SOMETIMES");  // NOLINT(concurrency-mt-unsafe)
  return std::string(folder == nullptr ? "." : folder) + "/" + name;
}

/// Whether this test runs for the first time.
bool FirstTime() {
  const ::testing::TestInfo& test = *::testing::UnitTest::GetInstance()->current_test_info();
  std::string name = std::string(test.test_suite_name()) + "." + test.name();
  for (char& c : name) {
    c = c == '/' ? '_' : c;
  }
  const int fd = open(Path(name).c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  if (fd >= 0) {
    close(fd);
  }
  return fd >= 0;
}

void Crash() {
  std::fputs("goes down in the middle of a line", stdout);
  std::fflush(stdout);
  raise(SIGKILL);
}

TEST_F(Sometimes, Passes) {}

TEST_F(Sometimes, PassesWithALineUnfinished) {
  std::fputs("no end of this line", stdout);
  std::fflush(stdout);
}

TEST_F(Sometimes, IsSkipped) { GTEST_SKIP() << "always"; }

TEST_F(Sometimes, FailsOnce) { EXPECT_FALSE(FirstTime()) << "the first time"; }

TEST_F(Sometimes, FailsTwice) { ADD_FAILURE() << (FirstTime() ? "the first time" : "again"); }

TEST_F(Sometimes, FailsAndThenIsSkipped) {
  if (!FirstTime()) {
    GTEST_SKIP() << "the second time";
  }
  FAIL() << "the first time: <b> & \033[0m";
}

TEST_F(Sometimes, CrashesOnce) {
  if (FirstTime()) {
    Crash();
  }
}

TEST_F(Sometimes, CrashesTwice) { Crash(); }

TEST_F(Sometimes, EndsTheProgramOnce) {
  if (FirstTime()) {
    std::fflush(stdout);
    _exit(0);
  }
}

TEST_F(Sometimes, HangsOnce) {
  if (FirstTime()) {
    // Says to whom it may concern that it hangs now.
    const int fd = open(Path("hanging").c_str(), O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
      close(fd);
    }
    pause();
  }
}

TEST_F(Sometimes, HasARaceOnce) {
  if (FirstTime()) {
    FAIL() << "WARNING: ThreadSanitizer: data race (pid=1)";
  }
}

TEST_F(Sometimes, FailsAndThenHasARace) {
  if (FirstTime()) {
    FAIL() << "the first time";
  }
  std::puts("WARNING: ThreadSanitizer: data race (pid=1)");
}

TEST_F(Sometimes, RunsAfterAllThese) {}

class Several : public ::testing::TestWithParam<int> {};

TEST_P(Several, FailsOnce) { EXPECT_FALSE(FirstTime()); }

INSTANTIATE_TEST_SUITE_P(Of, Several, ::testing::Range(0, 6));

class Prepared : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { Crash(); }
};

TEST_F(Prepared, IsNeverReached) {}

}  // namespace
