// SPDX-License-Identifier: Apache-2.0
//
// What a sentry may write by itself. Needs root.
#include "plugins/gvisor/launch/bounded_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/gvisor/fakes.h"

namespace gantry::gvisor {
namespace {

class BoundedLog : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "needs root";
    }
    auto made = MakeBoundedLog(kMaxLogBytes);
    ASSERT_TRUE(made) << made.error().message;
    log_ = std::move(*made);
  }

  /// As a process that has the descriptor can: as much as is taken. Gives the errno of the end.
  int WriteALot() {
    const std::string much(size_t{1} << 16, 'x');
    // It ends here where nothing else does.
    for (size_t done = 0; done < 4 * kMaxLogBytes; done += much.size()) {
      if (write(log_.get(), much.data(), much.size()) < 0) {
        return errno;
      }
    }
    return 0;
  }

  off_t Size() {
    struct stat status = {};
    EXPECT_EQ(fstat(log_.get(), &status), 0);
    return status.st_size;
  }

  UniqueFd log_;
};

TEST_F(BoundedLog, EndsWhereItIsFull) {
  EXPECT_EQ(WriteALot(), ENOSPC);
  EXPECT_LE(Size(), static_cast<off_t>(kMaxLogBytes));
  // Neither by its length alone, nor where it is opened anew.
  EXPECT_NE(fallocate(log_.get(), 0, 0, 2 * static_cast<off_t>(kMaxLogBytes)), 0);
  const UniqueFd again(open(OwnPath(log_.get()).c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  ASSERT_TRUE(again);
  EXPECT_LT(write(again.get(), "x", 1), 0);
}

TEST_F(BoundedLog, IsOnNoFileSystemOfTheNodes) {
  struct stat own = {};
  ASSERT_EQ(fstat(log_.get(), &own), 0);
  auto made = MakeBoundedLog(kMaxLogBytes);
  ASSERT_TRUE(made) << made.error().message;
  struct stat others = {};
  ASSERT_EQ(fstat(made->get(), &others), 0);
  EXPECT_NE(own.st_dev, others.st_dev) << "two have room of their own";
  for (const char* place : {"/", "/run", "/tmp", "/dev/shm"}) {
    struct stat nodes = {};
    if (stat(place, &nodes) == 0) {
      EXPECT_NE(own.st_dev, nodes.st_dev) << place;
    }
  }
}

TEST_F(BoundedLog, TellsTheLastWords) {
  EXPECT_EQ(LastWords(log_), "");
  const std::string text = "first\n{\"msg\":\"why\"}\n\n";
  ASSERT_EQ(write(log_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  EXPECT_EQ(LastWords(log_), "why");
  EXPECT_EQ(LastBytes(log_, 2), "\n\n");
  EXPECT_EQ(LastBytes(log_, size_t{1} << 20), text);
  EXPECT_EQ(LastWords(UniqueFd()), "");
}

TEST_F(BoundedLog, OfASentryOutlivesTheEngine) {
  FakeSandboxContext context;
  EXPECT_FALSE(KeptSentryLog(context));
  ASSERT_TRUE(context.Store(kSentryLogName, log_));
  log_.reset();
  const UniqueFd kept = KeptSentryLog(context);
  ASSERT_EQ(write(kept.get(), "words", 5), 5);
  EXPECT_EQ(LastWords(KeptSentryLog(context)), "words");
}

}  // namespace
}  // namespace gantry::gvisor
