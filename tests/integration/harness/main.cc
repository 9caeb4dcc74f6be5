// SPDX-License-Identifier: Apache-2.0
//
// The tests run in a child; this process cleans up after it however it ends,
// so that a crashed test leaves neither containers nor a containerd behind.

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <iostream>

#include <gtest/gtest.h>

#include "tests/integration/harness/environment.h"
#include "tests/integration/harness/settings.h"

namespace {

volatile sig_atomic_t tests_pid = 0;

void EndTests(int) {
  if (tests_pid > 0) {
    kill(tests_pid, SIGKILL);
  }
}

int RunTests(const gantry::e2e::Settings& settings, int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGPIPE, SIG_IGN);
  ::testing::InitGoogleTest(&argc, argv);
  ::testing::AddGlobalTestEnvironment(new gantry::e2e::Environment(settings));
  return RUN_ALL_TESTS();
}

}  // namespace

int main(int argc, char** argv) {
  const gantry::e2e::Settings settings = gantry::e2e::ReadSettings();
  tests_pid = fork();
  if (tests_pid == 0) {
    const int status = RunTests(settings, argc, argv);
    std::fflush(nullptr);
    _exit(status);
  }
  signal(SIGINT, EndTests);
  signal(SIGTERM, EndTests);
  int raw = 0;
  while (waitpid(tests_pid, &raw, 0) < 0 && errno == EINTR) {
  }
  gantry::e2e::CleanUp(settings);
  if (WIFSIGNALED(raw)) {
    std::cerr << "the tests were ended by signal " << WTERMSIG(raw) << "\n";
    return 128 + WTERMSIG(raw);
  }
  return WEXITSTATUS(raw);
}
