// SPDX-License-Identifier: Apache-2.0
//
// The real gantry-keeper in a folder of its own. Killed after the test.
#pragma once

#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/process/pidfd.h>

#include "core/link/channel.h"
#include "core/os/fs.h"
#include "core/os/process.h"
#include "core/os/spawn.h"

namespace gantry::keeper {

class KeeperProcessTest : public testing::Test {
 protected:
  KeeperProcessTest() : dir_(*os::TempDir::Create()) {}

  ~KeeperProcessTest() override {
    if (keeper_.pidfd) {
      IgnoreError(SendSignal(keeper_.pidfd.get(), SIGKILL), "it has ended");
      waitpid(keeper_.process.pid, nullptr, 0);
    }
  }

  void StartKeeper(const std::string& engine, std::vector<std::string> environment = {}) {
    os::SpawnRequest request;
    request.argv = {GANTRY_KEEPER, "--run-dir", dir_.path() + "/run", "--engine", engine};
    request.env = std::move(environment);
    keeper_ = *os::SpawnProcess(request);
  }

  static std::chrono::steady_clock::time_point Soon() {
    return std::chrono::steady_clock::now() + std::chrono::seconds(20);
  }

  template <class Answer, class Question>
  Result<Answer> Ask(const Question& question) {
    const std::string path = dir_.path() + "/run/keeper.sock";
    auto socket = ConnectUnix(path);
    while (!socket && !HasEnded(keeper_.pidfd.get())) {
      socket = ConnectUnix(path);
    }
    GANTRY_TRY(UniqueFd fd, std::move(socket));
    link::BlockingChannel channel(std::move(fd));
    return channel.Ask<Answer>(question, Soon());
  }

  os::TempDir dir_;
  os::SpawnResult keeper_;
};

}  // namespace gantry::keeper
