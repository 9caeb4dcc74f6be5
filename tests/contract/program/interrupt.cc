// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/program/interrupt.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <thread>

#include "tests/contract/harness/contract_test.h"

namespace gantry::contract {
namespace {

int signals[2] = {-1, -1};

void OnSignal(int signal) {
  const char number = static_cast<char>(signal);
  [[maybe_unused]] const ssize_t written = write(signals[1], &number, 1);
}

void EndWithSignal() {
  char number = 0;
  if (read(signals[0], &number, 1) != 1) {
    return;
  }
  std::fprintf(stderr, "\ngantry-backend-test: interrupted, removing what the tests made\n");
  // The rule under way fails of this; nobody is to read that.
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  dup2(nowhere, STDOUT_FILENO);
  dup2(nowhere, STDERR_FILENO);
  EndAllTests();
  _exit(128 + number);
}

}  // namespace

void EndTestsOnSignals() {
  if (pipe2(signals, O_CLOEXEC) != 0) {
    return;
  }
  std::thread(EndWithSignal).detach();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    // NOLINTNEXTLINE(cert-err33-c): it has no other handler
    std::signal(signal, OnSignal);
  }
}

}  // namespace gantry::contract
