// SPDX-License-Identifier: Apache-2.0
//
// A real process, for what ends one.
#pragma once

#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

#include <gtest/gtest.h>

#include <gantry/toolkit/process/pidfd.h>

namespace gantry::task {

/// A child that waits until it is killed.
class Child {
 public:
  Child() : pid_(fork()) {
    if (pid_ == 0) {
      while (true) {
        pause();
      }
    }
    EXPECT_GT(pid_, 0);
    if (const auto start_time = StartTimeOf({pid_})) {
      start_time_ = *start_time;
    }
  }

  ~Child() {
    if (!Ended()) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }

  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }

  /// Clock ticks since boot.
  uint64_t start_time() const { return start_time_; }

  /// How it ended, as waitpid(2) says it; nothing while it runs.
  std::optional<int> Ended() {
    int status = 0;
    if (!ended_ && waitpid(pid_, &status, WNOHANG) == pid_) {
      ended_ = status;
    }
    return ended_;
  }

 private:
  pid_t pid_;
  uint64_t start_time_ = 0;
  std::optional<int> ended_;
};

}  // namespace gantry::task
