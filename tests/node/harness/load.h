// SPDX-License-Identifier: Apache-2.0
//
// What works on the node while something of gantry is replaced under it: clients that exec and ask
// for states one after the other, and containers whose output is counted.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <future>
#include <string>
#include <vector>

#include "tests/harness/program.h"
#include "tests/node/harness/ctr.h"

namespace gantry::node {

/// Clients of a container that runs `sleep`. Thread: the test's.
class Load {
 public:
  using Failures = std::vector<std::string>;

  /// `execs` clients that run processes in it, and one that asks for its state.
  Load(const std::string& id, pid_t pid, int execs);
  ~Load();

  /// Until as many calls have come back as there are clients. False: they hang.
  bool Works();

  /// Ends the clients; what went wrong with their calls.
  Failures End();

 private:
  Failures ExecAgainAndAgain(const std::string& id);
  Failures AskForTheStateAgainAndAgain(const std::string& id, pid_t pid);

  std::atomic<bool> over_ = false;
  std::atomic<int> calls_ = 0;
  std::vector<std::future<Failures>> clients_;
};

/// A container that prints numbered lines until the file /stop is there, and ends with 42.
e2e::Program Counter(const std::string& id, bool terminal);
/// Empty: the counter's lines are all there, once each and in order.
std::string Gap(const std::string& out);

}  // namespace gantry::node
