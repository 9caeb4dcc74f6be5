// SPDX-License-Identifier: Apache-2.0
//
// Who calls runsc's command line, for the rows of gVisor: a process of its own that takes up
// orphans and reaps them, as a shim does, since runsc leaves sentry and gofers to its caller's
// subreaper and waits for their end when it deletes a container.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include <gantry/error.h>

#include "tests/harness/program.h"

namespace gantry::bench {

using Words = std::vector<std::string>;

/// Thread: one. Owner: of the process, and of what it was told to leave running.
class RunscHost {
 public:
  /// `runsc`: the binary and the flags that each of its commands gets. `log`: where what they
  /// and their containers say to their stderr goes; all other streams are /dev/null.
  RunscHost(Words runsc, const std::string& log);
  RunscHost(const RunscHost&) = delete;
  RunscHost& operator=(const RunscHost&) = delete;
  ~RunscHost();

  /// One command to its end. Units: ms, from before it is executed until it is reaped.
  /// Errors: kInternal: its status was not 0, with what it said; or two minutes have passed.
  Result<double> Run(const Words& command);
  /// The same, `count` times, so many `at_once`. Units: ms, of all.
  Result<double> RunMany(const Words& command, int count, int at_once);
  /// Started, and left running.
  Result<pid_t> Leave(const Words& command);

  pid_t pid() const { return program_.pid(); }

 private:
  Result<double> Ask(const Words& command, int count, int at_once);

  const Words runsc_;
  const std::string log_;
  std::vector<pid_t> left_;
  e2e::Program program_;
};

/// The process: takes requests from its stdin until that ends.
int ServeRunsc(const std::string& log);

}  // namespace gantry::bench
