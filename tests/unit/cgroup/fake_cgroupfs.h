// SPDX-License-Identifier: Apache-2.0
//
// A tree of plain files in the place of cgroupfs, and processes to put into a
// real one.
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/pidfd.h>

#include "core/os/fs.h"
#include "core/os/process.h"

namespace gantry::os {

/// What a tree of the kernel's is waited for before a test gives up.
constexpr std::chrono::milliseconds kBound{10'000};

class FakeCgroupFs {
 public:
  FakeCgroupFs() {
    auto dir = TempDir::Create();
    EXPECT_TRUE(dir);
    temp_ = *std::move(dir);
  }

  const std::string& path() const { return temp_.path(); }

  /// A file that holds `text`; its directories are made.
  void Put(const std::string& file, const std::string& text) const {
    const std::string whole = path() + "/" + file;
    std::filesystem::create_directories(std::filesystem::path(whole).parent_path());
    std::ofstream(whole, std::ios::trunc) << text;
  }

  std::string Get(const std::string& file) const {
    const auto text = ReadFile(path() + "/" + file, 1 << 20);
    return text ? *text : "<absent>";
  }

 private:
  TempDir temp_;
};

/// A child that waits until it is killed. Ends with this object.
class IdleProcess {
 public:
  IdleProcess() : pid_(fork()) {
    if (pid_ == 0) {
      for (;;) {
        pause();
      }
    }
  }

  IdleProcess(const IdleProcess&) = delete;
  IdleProcess& operator=(const IdleProcess&) = delete;

  ~IdleProcess() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }

  pid_t pid() const { return pid_; }

  /// How it ended, as waitpid gives it. To be called once, when it must end. 0: it does not.
  int Wait() {
    constexpr int kEndsWithinMs = 60'000;
    const auto pidfd = OpenPidfd({pid_, 0});
    pollfd ended{pidfd ? pidfd->get() : -1, POLLIN, 0};
    if (poll(&ended, 1, kEndsWithinMs) != 1) {
      return 0;
    }
    int status = -1;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return status;
  }

  bool Alive() const {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == 0;
  }

 private:
  pid_t pid_;
};

}  // namespace gantry::os
