// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/run_tests.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <iostream>

#include <gtest/gtest.h>

#include "tests/harness/environment.h"

namespace gantry::e2e {
namespace {

volatile sig_atomic_t tests_pid = 0;

void EndTests(int) {
  if (tests_pid > 0) {
    kill(tests_pid, SIGKILL);
  }
}

int InChild(const Settings& settings, int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGPIPE, SIG_IGN);
  ::testing::InitGoogleTest(&argc, argv);
  ::testing::AddGlobalTestEnvironment(new Environment(settings));
  return RUN_ALL_TESTS();
}

}  // namespace

int RunTests(const Settings& settings, int argc, char** argv) {
  tests_pid = fork();
  if (tests_pid == 0) {
    const int status = InChild(settings, argc, argv);
    std::fflush(nullptr);
    _exit(status);
  }
  signal(SIGINT, EndTests);
  signal(SIGTERM, EndTests);
  int raw = 0;
  while (waitpid(tests_pid, &raw, 0) < 0 && errno == EINTR) {
  }
  CleanUp(settings);
  if (WIFSIGNALED(raw)) {
    std::cerr << "the tests were ended by signal " << WTERMSIG(raw) << "\n";
    return 128 + WTERMSIG(raw);
  }
  return WEXITSTATUS(raw);
}

}  // namespace gantry::e2e
