// SPDX-License-Identifier: Apache-2.0
//
// The end of an instance without the engine, with a command of its runtime's.
#include "core/keeper/ending.h"

#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"
#include "core/os/process.h"

namespace gantry::keeper {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class EndingTest : public testing::Test {
 protected:
  EndingTest() {
    last_resort_.state_dirs = {state_};
    EXPECT_TRUE(os::MakeDirs(state_, 0700));
    last_resort_.cleanup =
        link::Command{{"/bin/sh", "-c", ""}, {"PATH=/usr/bin:/bin"}, dir_.path()};
  }

  ~EndingTest() override {
    while (waitpid(-1, nullptr, 0) > 0) {
    }
  }

  void Script(const std::string& text) { last_resort_.cleanup->argv[2] = text; }

  /// Passes until there is nothing left to do.
  bool End() {
    const auto deadline = std::chrono::steady_clock::now() + 30s;
    bool busy = true;
    while ((busy = ending_.GoOn(last_resort_)) && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
    return !busy;
  }

  std::string Log() const { return ReadFile(log_, 4096).value_or(""); }

  const os::TempDir dir_ = *os::TempDir::Create();
  const std::string state_ = dir_.path() + "/state/c1";
  const std::string log_ = dir_.path() + "/log";
  link::LastResort last_resort_;
  int spawned_ = 0;
  std::vector<Error> failed_;
  Ending ending_{{.spawn =
                      [this](const link::Command& command) {
                        ++spawned_;
                        return os::BeginSpawn(RequestOf(command));
                      },
                  .failed = [this](const Error& error) { failed_.push_back(error); }}};
};

TEST_F(EndingTest, RunsTheCommandOnceWhenAllAreDeadAndBeforeAnythingIsRemoved) {
  const os::SpawnResult init = *os::SpawnProcess({.argv = {"/bin/sleep", "60"}});
  last_resort_.init = {init.process.pid, init.process.start_time};
  Script("grep -q zombie /proc/" + std::to_string(init.process.pid) + "/status && test -d " +
         state_ + " && pwd >>" + log_);
  EXPECT_TRUE(End());
  EXPECT_EQ(Log(), dir_.path() + "\n");
  EXPECT_EQ(spawned_, 1);
  EXPECT_FALSE(Exists(state_));
  EXPECT_TRUE(failed_.empty());
}

/// An OCI runtime writes to hooks, which need not read.
TEST_F(EndingTest, RunsTheCommandWithSigpipeIgnored) {
  Script("grep SigIgn /proc/self/status >>" + log_);
  EXPECT_TRUE(End());
  EXPECT_EQ(Log(), "SigIgn:\t0000000000001000\n");
}

TEST_F(EndingTest, LeavesTheCommandToWhoHoldsItsFolder) {
  const UniqueFd holder = *os::OpenDirectory(dir_.path());
  ASSERT_EQ(flock(holder.get(), LOCK_EX), 0);
  Script("echo run >>" + log_);
  EXPECT_TRUE(ending_.GoOn(last_resort_));
  EXPECT_EQ(spawned_, 0);
  EXPECT_TRUE(Exists(state_));
  ASSERT_EQ(flock(holder.get(), LOCK_UN), 0);
  EXPECT_TRUE(End());
  EXPECT_EQ(Log(), "run\n");
}

TEST_F(EndingTest, KillsACommandForWhichThereIsNoTime) {
  Script("exec sleep 1000");
  EXPECT_TRUE(ending_.GoOn(last_resort_));
  EXPECT_EQ(spawned_, 1);
  ending_.GiveUp(last_resort_);
  int status = 0;
  ASSERT_GT(waitpid(-1, &status, 0), 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  ASSERT_EQ(failed_.size(), 1U);
  EXPECT_EQ(failed_.front().code, Code::kDeadlineExceeded);
  EXPECT_FALSE(Exists(state_));
}

TEST_F(EndingTest, GoesOnWithoutAProgramThatOthersCanReplace) {
  const std::string program = dir_.path() + "/runtime";
  ASSERT_TRUE(ReplaceFile(program, "#!/bin/sh\necho run >>" + log_ + "\n", 0755));
  ASSERT_EQ(chmod(program.c_str(), 0777), 0);
  last_resort_.cleanup->argv = {program};
  EXPECT_TRUE(End());
  EXPECT_EQ(spawned_, 0);
  ASSERT_EQ(failed_.size(), 1U);
  EXPECT_EQ(failed_.front().code, Code::kPermissionDenied);
  EXPECT_THAT(failed_.front().message, HasSubstr(program));
  EXPECT_FALSE(Exists(state_));
}

TEST_F(EndingTest, RunsItAtTheRootWhereItsFolderIsGone) {
  last_resort_.cleanup->cwd = dir_.path() + "/gone";
  Script("pwd >>" + log_);
  EXPECT_TRUE(End());
  EXPECT_EQ(Log(), "/\n");
}

}  // namespace
}  // namespace gantry::keeper
